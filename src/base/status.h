// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

// The kind of a failure, as far as callers act on it. The message holds the details.
enum class Code {
  ok,
  invalid,      // an argument, a setting or an address that makes no sense
  unavailable,  // this machine or process lacks something needed (an interface, a module)
  memory,       // out of memory
  timeout,      // a deadline passed
  peer_lost,    // a process that was still needed has ended
  aborted,      // another rank failed and sent its reason
  mismatch,     // ranks disagree: another collective, root, length, setting or version
  internal,     // a broken invariant inside Sluice
};

const char* to_string(Code code);

// Success, or a code with a message for the user. One shared_ptr, null on success, so passing
// success is free. The first function that can name an error (rank, setting, errno) writes the
// message; callers may prepend context with `Status::with`.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, int error = 0)
      : detail_(std::make_shared<const Detail>(Detail{code, std::move(message), error})) {}

  bool ok() const { return !detail_; }
  Code code() const { return detail_ ? detail_->code : Code::ok; }
  const std::string& message() const;
  // The errno value of the system call that failed; 0: none did.
  int error() const { return detail_ ? detail_->error : 0; }

  // The same, with "context: " before the message. Ok stays ok.
  Status with(const std::string& context) const;

 private:
  struct Detail {
    Code code;
    std::string message;
    int error;
  };
  std::shared_ptr<const Detail> detail_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by intent
  Result(Status status) : value_(std::move(status)) {}  // NOLINT: status must not be ok

  bool ok() const { return std::holds_alternative<T>(value_); }
  Status status() const { return ok() ? Status() : std::get<Status>(value_); }
  T& operator*() { return std::get<T>(value_); }
  const T& operator*() const { return std::get<T>(value_); }
  T* operator->() { return &std::get<T>(value_); }
  const T* operator->() const { return &std::get<T>(value_); }

 private:
  std::variant<Status, T> value_;
};

}  // namespace sluice
