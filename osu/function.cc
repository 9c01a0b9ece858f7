// SPDX-License-Identifier: BSD-3-Clause
#include "osu/function.h"

#include <string_view>

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

constexpr Function table[] = {
    {"allgather", "Allgather", "Allgather", Flow::gathered, false, true, allgather},
    {"allgatherv", "Allgatherv", "Allgatherv", Flow::gathered, false, true, allgatherv},
    {"allreduce", "Allreduce", "Allreduce", Flow::sum, false, true, allreduce},
    {"alltoall", "Alltoall", "All-to-All Personalized Exchange", Flow::exchanged, false, true,
     alltoall},
    {"alltoallv", "Alltoallv", "All-to-Allv Personalized Exchange", Flow::exchanged, false, true,
     alltoallv},
    {"barrier", "Barrier", "Barrier", Flow::none, false, false, barrier},
    {"bcast", "Bcast", "Broadcast", Flow::from_root, false, false, bcast},
    {"exscan", "Exscan", "Exscan", Flow::sum_before, false, true, exscan},
    {"reduce", "Reduce", "Reduce", Flow::sum_at_root, false, true, reduce},
    {"reduce_scatter", "Reduce_scatter", "Reduce_scatter", Flow::sum_shared, false, true,
     reduce_scatter},
    {"reduce_scatter_block", "Reduce_scatter_block", "Reduce_scatter_block", Flow::sum_shared, true,
     true, reduce_scatter_block},
    {"scan", "Scan", "Scan", Flow::sum_so_far, false, true, scan},
};

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

Layout::Layout(const Function& function, size_t count, int rank, int ranks) {
  lay_blocks(function, count, static_cast<size_t>(ranks));
  lay_pieces(function, count, rank, ranks);
  takes_in_place = (function.flow != Flow::sum_at_root || rank == root_rank) &&
                   (function.flow != Flow::sum_before || rank > 0);
}

void Layout::lay_blocks(const Function& function, size_t count, size_t ranks) {
  bool shared = function.flow == Flow::sum_shared;
  size_t remainder = shared && !function.even ? count % ranks : 0;
  call_count = shared && function.even ? count / ranks : count;
  size_t block = shared ? count / ranks : count;
  size_t at = 0;
  for (size_t i = 0; i < ranks; ++i) {
    size_t length = block + (i < remainder ? 1 : 0);
    counts.push_back(static_cast<int>(length));
    displs.push_back(static_cast<int>(at));
    at += length;
  }
}

void Layout::lay_pieces(const Function& function, size_t count, int rank, int ranks) {
  size_t own_at = static_cast<size_t>(displs[rank]);
  size_t own_count = static_cast<size_t>(counts[rank]);
  size_t total = static_cast<size_t>(displs.back() + counts.back());
  switch (function.flow) {
    case Flow::none:
      break;
    case Flow::from_root:
      if (rank == root_rank) recv_before = {{0, count, root_rank, 0, 0}};
      recv_after = {{0, count, root_rank, 0, 0}};
      recv_elements = count;
      break;
    case Flow::sum:
    case Flow::sum_at_root:
      send = recv_before = {{0, count, rank, 0, 0}};
      if (function.flow == Flow::sum || rank == root_rank) {
        recv_after = {{0, count, Piece::all, 0, 0}};
      }
      send_elements = recv_elements = count;
      break;
    case Flow::sum_so_far:
    case Flow::sum_before:
      send = {{0, count, rank, 0, 0}};
      send_elements = count;
      if (const int summed = function.flow == Flow::sum_before ? rank : rank + 1; summed > 0) {
        recv_before = send;
        recv_after = {{0, count, Piece::all, 0, 0, summed}};
        recv_elements = count;
      }
      break;
    case Flow::sum_shared:
      send = recv_before = {{0, total, rank, 0, 0}};
      recv_after = {{0, own_count, Piece::all, 0, own_at}};
      send_elements = recv_elements = total;
      break;
    case Flow::gathered:
      send = {{0, count, rank, 0, 0}};
      recv_before = {{own_at, count, rank, 0, 0}};
      for (int s = 0; s < ranks; ++s) {
        recv_after.push_back({static_cast<size_t>(displs[s]), count, s, 0, 0});
      }
      send_elements = count;
      recv_elements = total;
      break;
    case Flow::exchanged:
      for (int other = 0; other < ranks; ++other) {
        size_t at = static_cast<size_t>(displs[other]);
        send.push_back({at, count, rank, other, 0});
        recv_after.push_back({at, count, other, rank, 0});
      }
      recv_before = send;
      send_elements = recv_elements = total;
      break;
  }
}

}  // namespace sluice::osu
