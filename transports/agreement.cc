// SPDX-License-Identifier: BSD-3-Clause
#include "transports/agreement.h"

namespace sluice {

void end_with_other_what(Operation* operation, uint32_t theirs, const std::string& label) {
  operation->seen_what = theirs;
  operation->seen_bytes = operation->bytes;
  operation->status = {Code::mismatch, "call " + std::to_string(operation->tag.call) +
                                           " is operation " + std::to_string(theirs) + " at " +
                                           label + ", but operation " +
                                           std::to_string(operation->tag.what) + " here"};
}

void end_with_other_length(Operation* operation, size_t theirs, const std::string& label) {
  operation->seen_what = operation->tag.what;
  operation->seen_bytes = theirs;
  operation->status = {Code::mismatch, "a message of call " + std::to_string(operation->tag.call) +
                                           " has " + std::to_string(theirs) + " bytes at " + label +
                                           ", but " + std::to_string(operation->bytes) + " here"};
}

}  // namespace sluice
