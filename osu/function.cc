// SPDX-License-Identifier: BSD-3-Clause
#include "osu/function.h"

#include <string_view>
#include <utility>

#include "sluice/sluice.h"

namespace sluice::osu {
namespace {

int barrier(const Arguments& a) { return MPI_Barrier(a.comm); }

int bcast(const Arguments& a) { return MPI_Bcast(a.recv, a.count, a.type, root_rank, a.comm); }

int allreduce(const Arguments& a) {
  return MPI_Allreduce(a.send, a.recv, a.count, a.type, MPI_SUM, a.comm);
}

int reduce(const Arguments& a) {
  return MPI_Reduce(a.send, a.recv, a.count, a.type, MPI_SUM, root_rank, a.comm);
}

int reduce_scatter(const Arguments& a) {
  return MPI_Reduce_scatter(a.send, a.recv, a.counts, a.type, MPI_SUM, a.comm);
}

int reduce_scatter_block(const Arguments& a) {
  return MPI_Reduce_scatter_block(a.send, a.recv, a.count, a.type, MPI_SUM, a.comm);
}

int scan(const Arguments& a) { return MPI_Scan(a.send, a.recv, a.count, a.type, MPI_SUM, a.comm); }

int exscan(const Arguments& a) {
  return MPI_Exscan(a.send, a.recv, a.count, a.type, MPI_SUM, a.comm);
}

int allgather(const Arguments& a) {
  return MPI_Allgather(a.send, a.count, a.type, a.recv, a.count, a.type, a.comm);
}

int allgatherv(const Arguments& a) {
  return MPI_Allgatherv(a.send, a.count, a.type, a.recv, a.counts, a.displs, a.type, a.comm);
}

int alltoall(const Arguments& a) {
  return MPI_Alltoall(a.send, a.count, a.type, a.recv, a.count, a.type, a.comm);
}

int alltoallv(const Arguments& a) {
  return MPI_Alltoallv(a.send, a.counts, a.displs, a.type, a.recv, a.counts, a.displs, a.type,
                       a.comm);
}

int gather(const Arguments& a) {
  return MPI_Gather(a.send, a.count, a.type, a.recv, a.count, a.type, root_rank, a.comm);
}

int gatherv(const Arguments& a) {
  return MPI_Gatherv(a.send, a.count, a.type, a.recv, a.counts, a.displs, a.type, root_rank,
                     a.comm);
}

int scatter(const Arguments& a) {
  return MPI_Scatter(a.send, a.count, a.type, a.recv, a.count, a.type, root_rank, a.comm);
}

int scatterv(const Arguments& a) {
  return MPI_Scatterv(a.send, a.counts, a.displs, a.type, a.recv, a.count, a.type, root_rank,
                      a.comm);
}

constexpr Flow no_data{};
constexpr Flow from_root{
    .send = Holding::one, .recv = Holding::one, .senders = Members::root, .one_buffer = true};
constexpr Flow sum{.send = Holding::one, .recv = Holding::one, .addends = Addends::of_all};
constexpr Flow sum_at_root{.send = Holding::one,
                           .recv = Holding::one,
                           .receivers = Members::root,
                           .addends = Addends::of_all};
constexpr Flow sum_shared{.send = Holding::one, .recv = Holding::share, .addends = Addends::of_all};
constexpr Flow sum_shared_equally{
    .send = Holding::one, .recv = Holding::equal_share, .addends = Addends::of_all};
constexpr Flow sum_so_far{
    .send = Holding::one, .recv = Holding::one, .addends = Addends::up_to_own};
constexpr Flow sum_before{.send = Holding::one,
                          .recv = Holding::one,
                          .receivers = Members::all_but_first,
                          .addends = Addends::before_own};
constexpr Flow gathered{.send = Holding::one, .recv = Holding::each};
constexpr Flow gathered_at_root{
    .send = Holding::one, .recv = Holding::each, .receivers = Members::root};
constexpr Flow scattered{.send = Holding::each, .recv = Holding::one, .senders = Members::root};
constexpr Flow exchanged{.send = Holding::each, .recv = Holding::each};

constexpr Function table[] = {
    {"allgather", "Allgather", "Allgather", gathered, allgather},
    {"allgatherv", "Allgatherv", "Allgatherv", gathered, allgatherv},
    {"allreduce", "Allreduce", "Allreduce", sum, allreduce},
    {"alltoall", "Alltoall", "All-to-All Personalized Exchange", exchanged, alltoall},
    {"alltoallv", "Alltoallv", "All-to-Allv Personalized Exchange", exchanged, alltoallv},
    {"barrier", "Barrier", "Barrier", no_data, barrier},
    {"bcast", "Bcast", "Broadcast", from_root, bcast},
    {"exscan", "Exscan", "Exscan", sum_before, exscan},
    {"gather", "Gather", "Gather", gathered_at_root, gather},
    {"gatherv", "Gatherv", "Gatherv", gathered_at_root, gatherv},
    {"reduce", "Reduce", "Reduce", sum_at_root, reduce},
    {"reduce_scatter", "Reduce_scatter", "Reduce_scatter", sum_shared, reduce_scatter},
    {"reduce_scatter_block", "Reduce_scatter_block", "Reduce_scatter_block", sum_shared_equally,
     reduce_scatter_block},
    {"scan", "Scan", "Scan", sum_so_far, scan},
    {"scatter", "Scatter", "Scatter", scattered, scatter},
    {"scatterv", "Scatterv", "Scatterv", scattered, scatterv},
};

bool has(Members members, int rank) {
  switch (members) {
    case Members::root:
      return rank == root_rank;
    case Members::all_but_first:
      return rank > 0;
    case Members::all:
      break;
  }
  return true;
}

// Piece::summed of a rank's result.
int summed_ranks(Addends addends, int rank) {
  if (addends == Addends::up_to_own) return rank + 1;
  return addends == Addends::before_own ? rank : 0;
}

size_t elements_in(std::span<const Piece> pieces) {
  size_t elements = 0;
  for (const Piece& piece : pieces) elements += piece.count;
  return elements;
}

}  // namespace

const Function* find_function(const char* name) {
  for (const Function& function : table) {
    if (std::string_view(function.name) == name) return &function;
  }
  return nullptr;
}

std::string title(const Function& function) {
  return std::string("# OSU MPI ") + function.title + " Latency Test (Sluice " SLUICE_VERSION ")";
}

bool Flow::sends(int rank) const { return moves_data() && has(senders, rank); }

bool Flow::receives(int rank) const { return moves_data() && has(receivers, rank); }

size_t Flow::most_elements(size_t count, int ranks) const {
  const auto elements = [=](Holding holding) {
    if (holding == Holding::nothing) return size_t{0};
    return holding == Holding::each ? count * static_cast<size_t>(ranks) : count;
  };
  return (one_buffer ? 0 : elements(send)) + elements(recv);
}

Layout::Layout(const Function& function, size_t count, int rank, int ranks, bool in_place) {
  lay_blocks(function.flow, count, ranks);
  lay_sent(function.flow, rank);
  lay_received(function.flow, rank);
  const bool both = function.flow.sends(rank) && function.flow.receives(rank);
  if (in_place && both && function.flow.takes_in_place()) lay_in_place(function.flow, rank);
}

void Layout::lay_blocks(const Flow& flow, size_t count, int ranks) {
  const size_t number = static_cast<size_t>(ranks);
  const size_t block = flow.has_shares() ? count / number : count;
  const size_t remainder = flow.recv == Holding::share ? count % number : 0;
  call_count = flow.recv == Holding::equal_share ? block : count;
  size_t at = 0;
  for (size_t i = 0; i < number; ++i) {
    size_t length = block + (i < remainder ? 1 : 0);
    counts.push_back(static_cast<int>(length));
    displs.push_back(static_cast<int>(at));
    at += length;
  }
  vector_elements = flow.has_shares() ? at : count;
}

void Layout::lay_sent(const Flow& flow, int rank) {
  if (!flow.sends(rank)) return;
  std::vector<Piece> sent;
  if (flow.send == Holding::one) {
    sent.push_back({0, vector_elements, rank, 0, 0});
  } else {
    for (size_t i = 0; i < counts.size(); ++i) {
      sent.push_back(block_at(i, rank, static_cast<int>(i)));
    }
  }
  (flow.one_buffer ? recv_before : send) = std::move(sent);
  send_elements = elements_in(send);
}

// Ranks that receive nothing have the same receive buffer, so that any write to it is detected.
void Layout::lay_received(const Flow& flow, int rank) {
  if (!flow.moves_data()) return;
  recv_elements = flow.recv == Holding::each ? counts.size() * vector_elements : vector_elements;
  if (flow.receives(rank)) recv_after = result(flow, rank);
  recv_written = elements_in(recv_after);
}

void Layout::lay_in_place(const Flow& flow, int rank) {
  if (flow.senders == Members::root) {
    recv_in_place = true;
    recv_after.clear();
    recv_written = 0;
    return;
  }
  send_in_place = true;
  recv_written = recv_elements;  // behind a share of a sum MPI leaves anything
  const bool own_block = flow.send == Holding::one && flow.recv == Holding::each;
  recv_before = own_block ? std::vector{block_at(static_cast<size_t>(rank), rank, 0)} : send;
}

std::vector<Piece> Layout::result(const Flow& flow, int rank) const {
  const size_t own = static_cast<size_t>(rank);
  const int block = flow.send == Holding::each ? rank : 0;
  if (flow.addends != Addends::none) {
    const int summed = summed_ranks(flow.addends, rank);
    if (!flow.has_shares()) return {{0, vector_elements, Piece::all, 0, 0, summed}};
    return {{0, static_cast<size_t>(counts[own]), Piece::all, 0, static_cast<size_t>(displs[own]),
             summed}};
  }
  if (flow.recv == Holding::one) return {{0, vector_elements, root_rank, block, 0}};
  std::vector<Piece> blocks;
  for (size_t i = 0; i < counts.size(); ++i) {
    blocks.push_back(block_at(i, static_cast<int>(i), block));
  }
  return blocks;
}

Piece Layout::block_at(size_t place, int source, int block) const {
  return {static_cast<size_t>(displs[place]), static_cast<size_t>(counts[place]), source, block, 0};
}

}  // namespace sluice::osu
