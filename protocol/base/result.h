// Result<T>: a value or a boost::system::error_code, the one error type for sockets, files and our
// own modules (each module has its `enum class …Errc` with a category). The detail is logged where
// it is known, once; the code goes up.
#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <utility>

namespace base {

using Error = boost::system::error_code;
template <class T>
using Result = boost::system::result<T>;

}  // namespace base

#define BASE_CAT_(a, b) a##b
#define BASE_CAT(a, b) BASE_CAT_(a, b)
#define BASE_TRY(name, declaration, expression, leave) \
  auto name = (expression);                            \
  if (name.has_error()) leave name.error();            \
  declaration = std::move(name).value()
#define BASE_TRY_VOID(name, expression, leave) \
  do {                                         \
    auto name = (expression);                  \
    if (name.has_error()) leave name.error();  \
  } while (false)

// TRY(auto x, f()); returns f's error, or declares x with its value. CO_TRY does so in a coroutine.
#define TRY(declaration, expression) \
  BASE_TRY(BASE_CAT(try_, __LINE__), declaration, expression, return)
#define CO_TRY(declaration, expression) \
  BASE_TRY(BASE_CAT(try_, __LINE__), declaration, expression, co_return)
// For Result<void>.
#define TRY_VOID(expression) BASE_TRY_VOID(BASE_CAT(try_, __LINE__), expression, return)
#define CO_TRY_VOID(expression) BASE_TRY_VOID(BASE_CAT(try_, __LINE__), expression, co_return)
