// SPDX-License-Identifier: BSD-3-Clause
//
// What a link does about all that it can notice of its peer: every row of the table, and what it
// says when it gives up.
#include "transports/link/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace sluice::diagnosing {
namespace {

using Stage = Diagnosis::Stage;
using Sign = Diagnosis::Sign;
using Bytes = Diagnosis::Bytes;
using Limit = Diagnosis::Limit;
using Remedy = Diagnosis::Remedy;
using Cause = Diagnosis::Cause;

constexpr Sign all_signs[] = {Sign::nothing,  Sign::back,     Sign::broke,  Sign::stalled,
                              Sign::ended,    Sign::silent,   Sign::absent, Sign::refused,
                              Sign::deserted, Sign::unproved, Sign::spurned};
constexpr Bytes all_bytes[] = {Bytes::none, Bytes::coming, Bytes::lost};
constexpr Limit all_limits[] = {Limit::running, Limit::passed};

struct Line {
  Diagnosis::Side side;
  Stage stage;
  // A cell for each sign in the order above: a letter, or one for each case: no bytes missing, the
  // limit running, and passed; the same with bytes that are coming; and with bytes that are lost.
  std::string_view cells;
};
constexpr auto asks = Diagnosis::Side::asks, answers = Diagnosis::Side::answers;
constexpr Line expected_lines[] = {
    {asks, Stage::unmet, "d . . . . wUwUwU wUwUwU R . . ."},
    {answers, Stage::unmet, "wiwiwi . . . . wUwUwU wUwUwU R C wPwPwP wSwSwS"},
    {asks, Stage::opening, ". . B T E .D.D.D . . . . ."},
    {answers, Stage::opening, ". . B T E .D.D.D . . . . ."},
    {asks, Stage::open, ". ppwwpp p p E .D.D.D . . . . ."},
    {answers, Stage::open, ". ppwwpp p p E .D.D.D . . . . ."},
    {asks, Stage::last, ". . X X E .D.D.D . . . . ."},
    {answers, Stage::last, ". . X X E .D.D.D . . . . ."},
    {asks, Stage::local, ". . E . E . . . . . ."},
    {answers, Stage::local, ". . E . E . . . . . ."},
    {asks, Stage::parted, "wdwww. rrwwLL . . . w1w1w1 22ww.. 33ww.. . . ."},
    {answers, Stage::parted, "wiwww. rrwwLL . . . w1w1w1 22ww.. 33ww.. . . ."},
    {asks, Stage::rail, ". . pp..KK . pp..NN .p...D . . . . ."},
    {answers, Stage::rail, ". . pp..KK . pp..NN .p...D . . . . ."},
};

struct Letter {
  char letter;
  Diagnosis diagnosis;
};
constexpr Letter meanings[] = {
    {'.', {}},
    {'w', {Remedy::wait}},
    {'d', {Remedy::dial}},
    {'i', {Remedy::invite}},
    {'p', {Remedy::part}},
    {'r', {Remedy::resume}},
    {'U', {Remedy::give_up, Cause::unreached}},
    {'R', {Remedy::give_up, Cause::refused}},
    {'C', {Remedy::give_up, Cause::never_came}},
    {'P', {Remedy::give_up, Cause::unproved}},
    {'S', {Remedy::give_up, Cause::spurned}},
    {'B', {Remedy::give_up, Cause::broke_opening}},
    {'T', {Remedy::give_up, Cause::stalled}},
    {'X', {Remedy::give_up, Cause::broke_last}},
    {'E', {Remedy::give_up, Cause::ended}},
    {'D', {Remedy::give_up, Cause::silent}},
    {'1', {Remedy::give_up, Cause::silent_since}},
    {'2', {Remedy::give_up, Cause::absent_since}},
    {'3', {Remedy::give_up, Cause::refused_since}},
    {'L', {Remedy::give_up, Cause::lost}},
    {'K', {Remedy::give_up, Cause::rail_broke}},
    {'N', {Remedy::give_up, Cause::rail_ended}},
};

// Does that with all symptoms, and the letter that is expected of them.
void for_all_symptoms(auto visit) {
  for (const Line& line : expected_lines) {
    std::istringstream cells{std::string(line.cells)};
    for (const Sign sign : all_signs) {
      std::string cell;
      cells >> cell;
      ASSERT_TRUE(cell.size() == 1 || cell.size() == 6) << line.cells;
      size_t at = 0;
      for (const Bytes bytes : all_bytes) {
        for (const Limit limit : all_limits) {
          visit({line.side, line.stage, sign, bytes, limit}, cell[at++ % cell.size()]);
        }
      }
    }
  }
}

std::string text_of(const Diagnosis::Symptoms& seen) {
  return "side " + std::to_string(int(seen.side)) + " stage " + std::to_string(int(seen.stage)) +
         " sign " + std::to_string(int(seen.sign)) + " bytes " + std::to_string(int(seen.bytes)) +
         " limit " + std::to_string(int(seen.limit));
}

TEST(DiagnosisTable, OfAllSymptomsIsAsExpected) {
  for_all_symptoms([](const Diagnosis::Symptoms& seen, char letter) {
    const auto* const expected = std::ranges::find(meanings, letter, &Letter::letter);
    EXPECT_TRUE(Diagnosis::of(seen) == expected->diagnosis) << text_of(seen) << ": " << letter;
  });
}

// So their order means nothing, and none can hide another.
TEST(DiagnosisTable, HasNoTwoRowsForOneCase) {
  std::set<const Diagnosis::Row*> used;
  for_all_symptoms([&](const Diagnosis::Symptoms& seen, char) {
    const auto names = [&](const Diagnosis::Row& row) { return row.names(seen); };
    EXPECT_LE(std::ranges::count_if(Diagnosis::rows(), names), 1) << text_of(seen);
    for (const Diagnosis::Row& row : Diagnosis::rows()) {
      if (names(row)) used.insert(&row);
    }
  });
  EXPECT_EQ(used.size(), Diagnosis::rows().size());
}

// What is told is the cause, what had come before, and how it was noticed.
TEST(DiagnosisTable, EachCauseHasWordsOfItsOwn) {
  constexpr std::string_view said[] = {
      "HOW",
      "cannot connect to PEER: it has given up its connection to this process: HOW",
      "PEER is gone: it ended before it connected: HOW",
      "PEER is gone: its connection ended before it had proved itself: HOW",
      "HOW",
      "the connection to PEER broke (HOW) while the two agreed on encryption",
      "HOW",
      "the connection to PEER broke (HOW), and no other can take its place",
      "PEER is gone: HOW",
      "PEER is gone: HOW",
      "PEER is gone: BROKE; since then HOW",
      "PEER is gone: BROKE; since then nobody answers as it did: HOW",
      "PEER is gone: BROKE; since then it has given up its connection to this process: HOW",
      "the connection to PEER broke (BROKE), and HOW",
      "the connection to PEER broke: a connection for large messages ended amid one: HOW",
      "PEER is gone: a connection for large messages ended amid one: HOW"};
  size_t cause = static_cast<size_t>(Cause::unreached);
  for (const std::string_view text : said) {
    const Status how(Code::timeout, "HOW");
    const Status told = explain(static_cast<Cause>(cause++), "PEER", "BROKE", how);
    EXPECT_EQ(told.message(), text);
    EXPECT_EQ(told.code(), text == "HOW" ? Code::timeout : Code::peer_lost) << text;
  }
  EXPECT_EQ(cause, static_cast<size_t>(Cause::rail_ended) + 1);
  EXPECT_EQ(explain(Cause::refused_since, "PEER", "BROKE", {}).message(),
            "PEER is gone: BROKE; since then it has given up its connection to this process");
}

}  // namespace
}  // namespace sluice::diagnosing
