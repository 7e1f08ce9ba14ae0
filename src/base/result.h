// Result<T>: a value, or an Error that says what was got, what was expected and where. For bad
// input, file errors and system failures. Programming errors use check.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "thimble/base/check.h"

namespace thimble {

// Decides the exit code of the command line (see ExitCode).
enum class ErrorKind {
  kBadInput,    // wrong use, bad file, impossible model: exit code 2
  kFailed,      // went wrong while running (disk full, unreadable device): exit code 1
  kDoesNotFit,  // the plan needs more than the budget: exit code 3
};

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string message;  // one line; names the file, flag or layer concerned
};

inline Error BadInput(std::string message) { return {ErrorKind::kBadInput, std::move(message)}; }
inline Error Failed(std::string message) { return {ErrorKind::kFailed, std::move(message)}; }
inline Error DoesNotFit(std::string message) {
  return {ErrorKind::kDoesNotFit, std::move(message)};
}

inline int ExitCode(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kBadInput:
      return 2;
    case ErrorKind::kFailed:
      return 1;
    case ErrorKind::kDoesNotFit:
      return 3;
  }
  return 1;
}

// Puts "context: " before the message and keeps the kind.
inline Error WithContext(const std::string& context, Error error) {
  error.message = context + ": " + error.message;
  return error;
}

namespace internal {
// Abort: value() of a failed Result, error() of one that succeeded.
[[noreturn]] void NoValue(const Error& error);
[[noreturn]] void NoError();
}  // namespace internal

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Requires ok().
  T& value() & { return Checked(), std::get<0>(state_); }
  const T& value() const& { return Checked(), std::get<0>(state_); }
  T&& value() && { return Checked(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Requires !ok().
  const Error& error() const {
    if (ok()) internal::NoError();
    return std::get<1>(state_);
  }

 private:
  void Checked() const {
    if (!ok()) internal::NoValue(std::get<1>(state_));
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (ok()) internal::NoError();
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace thimble

#define THIMBLE_CONCAT_INNER(a, b) a##b
#define THIMBLE_CONCAT(a, b) THIMBLE_CONCAT_INNER(a, b)

// Returns the error of `expr` from the enclosing function, if it has one.
#define THIMBLE_TRY(expr)                                            \
  do {                                                               \
    auto thimble_try_result = (expr);                                \
    if (!thimble_try_result.ok()) return thimble_try_result.error(); \
  } while (false)

// `declaration` receives the value of `expr`, or its error is returned from the enclosing function.
#define THIMBLE_ASSIGN_OR_RETURN(declaration, expr) \
  THIMBLE_ASSIGN_OR_RETURN_INNER(THIMBLE_CONCAT(thimble_result_, __LINE__), declaration, expr)
#define THIMBLE_ASSIGN_OR_RETURN_INNER(result, declaration, expr) \
  auto result = (expr);                                           \
  if (!result.ok()) return result.error();                        \
  declaration = std::move(result).value()
