// The floor of a mirror catch-up on this machine, to calibrate a bench run: one connection, Fetch
// v4 of one partition after another, CRC-32C of every batch, one pwrite per answer. What a mirror
// adds to this is its own cost.
//
//   mirror_floor HOST PORT TOPIC PARTITIONS FILE [FETCH_MIB]
#include <arpa/inet.h>
#include <fcntl.h>
#include <isa-l.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::int64_t number(const std::uint8_t* p, int bytes) {
  std::int64_t v = static_cast<std::int8_t>(p[0]);
  for (int i = 1; i < bytes; ++i) v = v * 256 + p[i];
  return v;
}

void put(std::string& out, std::int64_t v, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(v >> (8 * i));
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::int64_t>(text.size()), 2);
  out += text;
}

std::string fetch_request(const std::string& topic, int partition, std::int64_t offset,
                          std::int64_t bytes_max) {
  std::string body;
  put(body, 1, 2), put(body, 4, 2), put(body, 7, 4), put_text(body, "mirror-floor");
  put(body, -1, 4), put(body, 0, 4), put(body, 1, 4), put(body, bytes_max, 4), put(body, 0, 1);
  put(body, 1, 4), put_text(body, topic), put(body, 1, 4);
  put(body, partition, 4), put(body, offset, 8), put(body, bytes_max, 4);
  std::string frame;
  put(frame, static_cast<std::int64_t>(body.size()), 4);
  return frame + body;
}

bool receive(int socket, std::uint8_t* into, std::int64_t bytes) {
  for (std::int64_t have = 0; have < bytes;) {
    ssize_t got = recv(socket, into + have, static_cast<std::size_t>(bytes - have), 0);
    if (got <= 0) return false;
    have += got;
  }
  return true;
}

struct Totals {
  std::int64_t bytes = 0, batches = 0, damaged = 0;
};

// One answer's records: checks each whole batch, moves the offset on. Returns the bytes of whole
// batches.
std::int64_t walk(const std::uint8_t* records, std::int64_t size, std::int64_t& offset, Totals& t) {
  std::int64_t at = 0;
  while (at + 61 <= size) {
    const std::uint8_t* b = records + at;
    std::int64_t length = number(b + 8, 4);
    if (at + 12 + length > size) break;
    std::uint32_t crc =
        ~crc32_iscsi(const_cast<std::uint8_t*>(b + 21), static_cast<int>(length - 9), ~0u);
    if (crc != static_cast<std::uint32_t>(number(b + 17, 4))) ++t.damaged;
    offset = number(b, 8) + number(b + 23, 4) + 1;
    at += 12 + length;
    ++t.batches;
  }
  return at;
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) {
    std::fprintf(stderr, "usage: mirror_floor HOST PORT TOPIC PARTITIONS FILE [FETCH_MIB]\n");
    return 2;
  }
  int link = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(words[2])));
  inet_pton(AF_INET, words[1], &address.sin_addr);
  if (connect(link, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("connect");
    return 1;
  }
  const std::int64_t fetch_bytes = std::int64_t{count > 6 ? std::atoi(words[6]) : 1} << 20;
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(fetch_bytes) + (2u << 20), 1);
  int out = open(words[5], O_CREAT | O_TRUNC | O_WRONLY, 0644);
  Totals t;
  auto begin = std::chrono::steady_clock::now();
  for (int p = 0; p < std::atoi(words[4]); ++p) {
    for (std::int64_t offset = 0;;) {
      std::string frame = fetch_request(words[3], p, offset, fetch_bytes);
      if (send(link, frame.data(), frame.size(), 0) != static_cast<ssize_t>(frame.size())) return 1;
      std::uint8_t head[4];
      if (!receive(link, head, 4)) return 1;
      std::int64_t length = number(head, 4);
      if (length < 0 || static_cast<std::size_t>(length) > buffer.size()) {
        std::fprintf(stderr, "an answer of %ld bytes\n", static_cast<long>(length));
        return 1;
      }
      if (!receive(link, buffer.data(), length)) return 1;
      std::size_t at = 12;  // correlation id, throttle time, one topic
      at += 2 + static_cast<std::size_t>(number(&buffer[at], 2)) + 4;
      if (std::int64_t error = number(&buffer[at + 4], 2)) {
        std::fprintf(stderr, "error %ld\n", static_cast<long>(error));
        return 1;
      }
      at += 22;
      std::int64_t aborted = number(&buffer[at], 4);
      at += 4 + static_cast<std::size_t>(aborted > 0 ? aborted * 16 : 0);
      std::int64_t size = number(&buffer[at], 4), before = offset;
      at += 4;
      std::int64_t whole = walk(&buffer[at], size > 0 ? size : 0, offset, t);
      if (offset == before) break;
      if (pwrite(out, &buffer[at], static_cast<std::size_t>(whole), t.bytes) != whole) {
        std::perror("pwrite");
        return 1;
      }
      t.bytes += whole;
    }
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  double gb = static_cast<double>(t.bytes) / 1e9;
  std::printf(
      "{\"gb\": %.3f, \"batches\": %ld, \"damaged\": %ld, \"seconds\": %.2f, \"cpu_seconds\": "
      "%.2f}\n",
      gb, static_cast<long>(t.batches), static_cast<long>(t.damaged), seconds, cpu);
  return t.damaged == 0 ? 0 : 1;
}
