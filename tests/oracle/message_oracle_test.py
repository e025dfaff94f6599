#!/usr/bin/env python3
"""Our messages against the schemas in Kafka's jar and the bytes that its classes write."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import check_api_versions  # noqa: E402
import check_vectors  # noqa: E402
import compare_schemas  # noqa: E402
from lib import suite  # noqa: E402


def messages(s):
    @s.test("each field is as in Kafka's schemas")
    def schemas():
        found = compare_schemas.compare_all(compare_schemas.default_jar())
        suite.equal("differences", found, [])

    @s.test("Kafka still lists the APIs and versions that are committed")
    def versions():
        suite.equal("versions", check_api_versions.make(), check_api_versions.committed())

    @s.test("Kafka still writes the vectors that are committed")
    def vectors():
        suite.equal("differences", check_vectors.difference(check_vectors.make(),
                                                            check_vectors.committed()), "")


if __name__ == "__main__":
    sys.exit(suite.main({"messages": messages}))
