// SPDX-License-Identifier: BSD-3-Clause
#include "transports/call_check.h"

namespace sluice {
namespace {

std::string text_of(const Tag& tag) {
  return "operation " + std::to_string(tag.signature) + " of " +
         std::to_string(tag.size & ~Tag::of_message) + " bytes";
}

}  // namespace

void end_with_other_call(Operation* operation, const Tag& theirs, const std::string& label) {
  operation->seen_signature = theirs.signature;
  operation->seen_size = theirs.size;
  operation->seen_bytes = operation->bytes;
  operation->status = {Code::mismatch, "call " + std::to_string(operation->tag.number_of_call()) +
                                           " is " + text_of(theirs) + " at " + label + ", but " +
                                           text_of(operation->tag) + " here"};
}

void end_with_other_length(Operation* operation, const Tag& theirs, size_t bytes,
                           const std::string& label) {
  operation->seen_signature = operation->tag.signature;
  operation->seen_size = theirs.size;
  operation->seen_bytes = bytes;
  operation->status = {Code::mismatch, "a message of call " +
                                           std::to_string(operation->tag.number_of_call()) +
                                           " has " + std::to_string(bytes) + " bytes at " + label +
                                           ", but " + std::to_string(operation->bytes) + " here"};
}

}  // namespace sluice
