// SPDX-License-Identifier: BSD-3-Clause
//
// buffers --driver PATH [--most COUNT]: collectives on memory of every kind that a CUDA driver has,
// beside host memory. The program loads the driver itself, after the first collectives, so that
// Sluice must notice it. What each case expects is computed here, not taken from an MPI library.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "tests/cuda/kinds.h"

using test::Kind;
using test::KindMemory;
using test::kinds;
using test::name_of;

namespace {

using test::rank, test::size;

double value(int of, size_t at) {
  return static_cast<double>(of * 1000 + static_cast<int>(at % 997));
}

std::vector<double> values(int of, size_t count) {
  std::vector<double> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = value(of, i);
  return all;
}

std::vector<double> sums(size_t count) {
  std::vector<double> all(count);
  for (size_t i = 0; i < count; ++i) {
    for (int of = 0; of < size; ++of) all[i] += value(of, i);
  }
  return all;
}

std::string describe(const char* what, Kind in, Kind out, size_t count) {
  return std::string(what) + " of " + std::to_string(count) + " from " + name_of(in) + " to " +
         name_of(out);
}

// The kinds of this rank; other ranks have others.
Kind kind_of(size_t index) { return kinds[(index + static_cast<size_t>(rank)) % std::size(kinds)]; }

void allreduce(Kind in, Kind out, size_t count) {
  KindMemory from(in, count * sizeof(double)), to(out, count * sizeof(double));
  from.put(values(rank, count));
  MPI_Allreduce(from.data(), to.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  test::check(to.get<double>(count) == sums(count), describe("allreduce", in, out, count));
  test::check(from.get<double>(count) == values(rank, count), describe("input", in, out, count));
}

void allreduce_in_place(Kind kind, size_t count) {
  KindMemory both(kind, count * sizeof(double));
  both.put(values(rank, count));
  MPI_Allreduce(MPI_IN_PLACE, both.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  test::check(both.get<double>(count) == sums(count),
              describe("allreduce in place", kind, kind, count));
}

void broadcast(Kind kind, size_t count) {
  const int root = size - 1;
  KindMemory data(kind, count * sizeof(double));
  data.put(values(rank, count));
  MPI_Bcast(data.data(), static_cast<int>(count), MPI_DOUBLE, root, MPI_COMM_WORLD);
  test::check(data.get<double>(count) == values(root, count),
              describe("broadcast", kind, kind, count));
}

const size_t counts[] = {0, 1, 7, 1000, 40000, 300000};

void every_kind(size_t most) {
  for (const size_t count : counts) {
    if (count > most) break;
    for (size_t i = 0; i < std::size(kinds); ++i) {
      for (size_t j = 0; j < std::size(kinds); ++j) {
        if (count > 1 && (i + j) % (count > 1000 ? 5 : 2) != 0) continue;
        allreduce(kind_of(i), kind_of(j + i), count);
      }
      allreduce_in_place(kind_of(i), count);
      broadcast(kind_of(i), count);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  test::start(argc, argv);
  const test::Options options(argc, argv);
  for (int i = 0; i < 3; ++i) allreduce(Kind::host, Kind::host, 1);
  test::load_driver(options.text("driver", "libcuda.so.1"));
  every_kind(options.number("most", counts[std::size(counts) - 1]));
  return test::finish("buffers");
}
