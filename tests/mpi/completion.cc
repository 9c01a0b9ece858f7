// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/completion.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace test {
namespace {

// (check counts, and is for one thread.)
void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

// Some requests, in the order in which a function gets them.
class Chosen {
 public:
  Chosen(const std::vector<MPI_Request*>& requests, Random& random);

  void wait();
  void wait_all();
  void wait_any();
  void wait_some();
  void test();
  void test_all();
  void test_any();
  void test_some();
  void look();

 private:
  struct Function {
    void (Chosen::*call)();
    bool waits;
  };
  static const Function functions[];
  friend void test::complete_some(const std::vector<MPI_Request*>&, Random&, Completing);

  int count() const { return static_cast<int>(handles_.size()); }
  MPI_Request* handles() { return handles_.data(); }
  MPI_Status* status() { return ignores_ ? MPI_STATUS_IGNORE : statuses_.data(); }
  MPI_Status* statuses() { return ignores_ ? MPI_STATUSES_IGNORE : statuses_.data(); }
  bool is_completed(size_t i) const {
    return before_[i] != MPI_REQUEST_NULL && handles_[i] == MPI_REQUEST_NULL;
  }
  size_t completed() const;
  void expect_one(int index, bool is_one) const;
  void expect_all(bool all) const;
  void expect_some(int count, const std::vector<int>& indices) const;
  void give_back() const;

  std::vector<MPI_Request*> from_;  // null: none
  std::vector<MPI_Request> before_, handles_;
  std::vector<MPI_Status> statuses_;
  const bool ignores_;
};

const Chosen::Function Chosen::functions[] = {
    {&Chosen::wait, true},      {&Chosen::wait_all, true},   {&Chosen::wait_any, true},
    {&Chosen::wait_some, true}, {&Chosen::test, false},      {&Chosen::test_all, false},
    {&Chosen::test_any, false}, {&Chosen::test_some, false}, {&Chosen::look, false},
};

Chosen::Chosen(const std::vector<MPI_Request*>& requests, Random& random)
    : ignores_(random.chance(2)) {
  for (MPI_Request* const request : requests) {
    if (*request != MPI_REQUEST_NULL) from_.push_back(request);
  }
  expect(!from_.empty(), "there is no request to complete");
  const auto shuffle = [&] {
    for (size_t i = from_.size(); i > 1; --i) std::swap(from_[i - 1], from_[random.below(i)]);
  };
  shuffle();
  from_.resize(random.chance(3) ? from_.size() : 1 + random.below(from_.size()));
  if (random.chance(3)) from_.insert(from_.end(), 1 + random.below(3), nullptr);
  shuffle();
  for (const MPI_Request* const request : from_)
    before_.push_back(request ? *request : MPI_REQUEST_NULL);
  handles_ = before_;
  statuses_.resize(handles_.size());
}

size_t Chosen::completed() const {
  size_t number = 0;
  for (size_t i = 0; i < handles_.size(); ++i) {
    expect(handles_[i] == before_[i] || is_completed(i), "a request has changed its handle");
    number += is_completed(i);
  }
  return number;
}

void Chosen::expect_one(int index, bool is_one) const {
  expect(completed() == (is_one ? 1 : 0), "not one request is completed");
  if (is_one) expect(is_completed(static_cast<size_t>(index)), "another request is completed");
}

void Chosen::expect_all(bool all) const {
  const auto null = static_cast<size_t>(std::ranges::count(before_, MPI_REQUEST_NULL));
  expect(completed() == (all ? before_.size() - null : 0), "not all requests are completed");
}

void Chosen::expect_some(int count, const std::vector<int>& indices) const {
  expect(count == static_cast<int>(completed()), "other requests are completed than it says");
  for (int i = 0; i < count; ++i) {
    expect(is_completed(static_cast<size_t>(indices[static_cast<size_t>(i)])),
           "a request is named that is not completed");
  }
}

// (Of a null request each is done at once.)
void Chosen::wait() {
  expect(MPI_Wait(handles(), status()) == MPI_SUCCESS, "MPI_Wait fails");
  expect(handles_[0] == MPI_REQUEST_NULL, "MPI_Wait leaves its request");
}

void Chosen::wait_all() {
  expect(MPI_Waitall(count(), handles(), statuses()) == MPI_SUCCESS, "MPI_Waitall fails");
  expect_all(true);
}

void Chosen::wait_any() {
  int index = -1;
  expect(MPI_Waitany(count(), handles(), &index, status()) == MPI_SUCCESS, "MPI_Waitany fails");
  expect_one(index, true);
}

void Chosen::wait_some() {
  int some = 0;
  std::vector<int> indices(handles_.size());
  expect(MPI_Waitsome(count(), handles(), &some, indices.data(), statuses()) == MPI_SUCCESS,
         "MPI_Waitsome fails");
  expect(some > 0, "MPI_Waitsome completes nothing");
  expect_some(some, indices);
}

void Chosen::test() {
  int flag = 0;
  expect(MPI_Test(handles(), &flag, status()) == MPI_SUCCESS, "MPI_Test fails");
  expect((handles_[0] == MPI_REQUEST_NULL) == (flag != 0), "MPI_Test's flag");
}

void Chosen::test_all() {
  int flag = 0;
  expect(MPI_Testall(count(), handles(), &flag, statuses()) == MPI_SUCCESS, "MPI_Testall fails");
  expect_all(flag != 0);
}

void Chosen::test_any() {
  int flag = 0, index = -1;
  expect(MPI_Testany(count(), handles(), &index, &flag, status()) == MPI_SUCCESS,
         "MPI_Testany fails");
  expect_one(index, flag != 0);
}

void Chosen::test_some() {
  int some = 0;
  std::vector<int> indices(handles_.size());
  expect(MPI_Testsome(count(), handles(), &some, indices.data(), statuses()) == MPI_SUCCESS,
         "MPI_Testsome fails");
  expect_some(some, indices);
}

// Completes nothing.
void Chosen::look() {
  int flag = 0;
  expect(MPI_Request_get_status(handles_[0], &flag, status()) == MPI_SUCCESS,
         "MPI_Request_get_status fails");
  expect(completed() == 0, "MPI_Request_get_status completes a request");
}

void Chosen::give_back() const {
  for (size_t i = 0; i < handles_.size(); ++i) {
    if (from_[i]) *from_[i] = handles_[i];
  }
}

}  // namespace

void complete_some(const std::vector<MPI_Request*>& requests, Random& random, Completing by) {
  Chosen chosen(requests, random);
  std::vector<Chosen::Function> some;
  std::ranges::copy_if(Chosen::functions, std::back_inserter(some), [by](const auto& function) {
    return by == Completing::any || function.waits == (by == Completing::by_waits);
  });
  (chosen.*random.pick(some).call)();
  chosen.give_back();
}

}  // namespace test
