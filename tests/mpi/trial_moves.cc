// SPDX-License-Identifier: BSD-3-Clause
//
// Trials of the barrier and of the collectives that move data. Datatypes differ between ranks and
// between the two sides, with equal signatures.
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <numeric>

#include "tests/mpi/narrow.h"
#include "tests/mpi/numbers.h"
#include "tests/mpi/trial.h"

namespace test {
namespace {

// Where the bytes of a number are, and which are a long double's padding, which Open MPI 5 does not
// always transfer.
std::vector<Segment> map_of(const Number& number) {
  const auto part = [](Values values, size_t at, size_t bytes) -> Segment {
    const bool padded = values == Values::floating && bytes == sizeof(long double);
    return {static_cast<ptrdiff_t>(at), bytes, padded ? bytes - long_double_bytes : 0};
  };
  if (number.values == Values::pair) {
    return {part(number.first, 0, number.first_size),
            part(number.second, number.index_at, number.second_size)};
  }
  if (number.values == Values::complex) {
    const size_t half = number.extent / 2;
    return {part(Values::floating, 0, half), part(Values::floating, half, half)};
  }
  return {part(number.values, 0, number.extent)};
}

// Every predefined type, and Sluice's own.
const std::vector<Unit>& units_to_move() {
  static const std::vector<Unit> units = [] {
    std::vector<Unit> list = all_units();
    for (const Number& number : all_numbers()) {
      list.push_back({number.handle, map_of(number), static_cast<ptrdiff_t>(number.extent)});
    }
    if (extent_of(MPI_CHARACTER) == 1) list.push_back({MPI_CHARACTER, {{0, 1}}, 1});
    list.push_back({MPI_WCHAR, {{0, 4}}, 4});
    for (const NarrowFormat& format : narrow_formats()) {
      if (format.type != MPI_DATATYPE_NULL) list.push_back({format.type, {{0, 2}}, 2});
    }
    return list;
  }();
  return units;
}

class Mover {
 public:
  explicit Mover(Trial& trial);

  Rest broadcast();
  Rest allgather(bool vector);
  Rest alltoall(bool vector);
  // A gather, or a scatter.
  Rest move_by_root(bool gathers, bool vector);

 private:
  size_t draw_units();
  std::vector<size_t> draw_blocks(size_t first, bool vector);
  ShapedType draw(size_t units, size_t count);
  std::vector<Memory::Block> lay_out(const std::vector<size_t>& counts, bool scattered);
  // Blocks with these numbers of units; `scattered`: in any order, with gaps between. It lives as
  // long as this.
  Side& make(const std::vector<size_t>& units, bool scattered);
  // Replaces at random what means nothing on this rank.
  void garble(Words* words);
  // receives: whether the call defines the output on this rank.
  void verify(Side* input, Side* output, bool receives = true);

  Trial& trial_;
  const Unit& unit_;
  // All block sizes are multiples of it, so that a type may have any divisor of it as its units.
  const size_t grain_;
  const bool nothing_;  // no units at all
  // If there are no units: how many elements of size 0 instead. (Equal on all ranks: a rank of Open
  // MPI whose counts sum to zero does not call its peers.)
  const size_t elements_of_nothing_;
  // Small messages, with elements of equal size on all ranks. Otherwise MPI gets bytes, because
  // Open MPI 4.1.4 segments messages and selects algorithms by the local element size. It hangs if
  // these differ between ranks. It also writes past the end of some types that arrive in parts.
  const bool plain_;
  size_t most_units_;
  size_t per_element_ = 0;
  std::vector<std::unique_ptr<Side>> sides_;
};

Mover::Mover(Trial& trial)
    : trial_(trial),
      unit_(trial.shared.pick(units_to_move())),
      grain_(trial.shared.pick<size_t>({1, 1, 2, 3, 4, 6, 12})),
      nothing_(trial.shared.chance(25)),
      elements_of_nothing_(nothing_ ? trial.shared.below(4) : 0),
      plain_(trial.shared.chance(2) || trial.is_tame),
      most_units_(trial.most_bytes / unit_.size() / trial.size()) {
  if (!trial.shared.chance(40)) most_units_ = std::min<size_t>(most_units_, 65536);
  if (plain_) most_units_ = std::min(most_units_, 4000 / unit_.size() / trial.size());
}

size_t Mover::draw_units() {
  if (nothing_) return 0;
  const size_t small[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 101, 255};
  const size_t large[] = {1000, 1024, 4099, 8192, 20011, 65536, 1 << 20};
  const size_t n =
      trial_.shared.chance(3) ? large[trial_.shared.below(7)] : small[trial_.shared.below(14)];
  return std::min(n * grain_, most_units_ / grain_ * grain_);
}

ShapedType Mover::draw(size_t units, size_t count) {
  if (trial_.is_tame) return contiguous_type(unit_, units);
  if (elements_of_nothing_ > 0) return draw_empty_type(unit_, trial_.own);
  if (units % 2 == 0 && trial_.own.chance(3)) {
    return draw_nested_type(unit_, units, 2, count, trial_.own);
  }
  return draw_type(unit_, units, count, trial_.own);
}

std::vector<Memory::Block> Mover::lay_out(const std::vector<size_t>& counts, bool scattered) {
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  ptrdiff_t at = 0;
  // (MPICH 4.0.2's MPI_Iallgatherv of one rank ignores the displacement.)
  scattered &= !trial_.is_tame || trial_.comm.size > 1;
  if (scattered) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[trial_.own.below(i)]);
    at = static_cast<ptrdiff_t>(trial_.own.below(9)) - 4;
  }
  std::vector<Memory::Block> blocks(counts.size());
  for (const size_t i : order) {
    blocks[i] = {at, counts[i]};
    at += static_cast<ptrdiff_t>(counts[i] + (scattered ? trial_.own.below(3) : 0));
    // The displacement of an empty block means nothing.
    if (scattered && counts[i] == 0) blocks[i].displacement = 12345678;
  }
  return blocks;
}

Side& Mover::make(const std::vector<size_t>& units, bool scattered) {
  std::vector<size_t> divisors, counts;
  for (size_t k = 1; k <= grain_; ++k) {
    if (grain_ % k == 0) divisors.push_back(k);
  }
  if (!per_element_ || !plain_) {
    per_element_ = (plain_ ? trial_.shared : trial_.own).pick(divisors);
  }
  const size_t per_element = per_element_;
  size_t span = 8 + 3 * units.size();  // in extents, gaps included
  for (const size_t n : units) span += n / per_element;
  ShapedType type = draw(per_element, span);
  for (const size_t n : units) counts.push_back(nothing_ ? elements_of_nothing_ : n / per_element);
  trial_.story += "; " + type.construction + " of " + std::to_string(type.size()) + " bytes x";
  for (const size_t n : counts) trial_.story += " " + std::to_string(n);
#ifdef OPEN_MPI
  const MPI_Datatype in_mpi = plain_ ? MPI_DATATYPE_NULL : MPI_BYTE;
#else
  const MPI_Datatype in_mpi = MPI_BYTE;  // MPICH 4.0.2 mixes up the bytes of some types
#endif
  sides_.push_back(
      std::make_unique<Side>(std::move(type), lay_out(counts, scattered), in_mpi, trial_));
  return *sides_.back();
}

void Mover::garble(Words* words) {
  if (trial_.is_tame) return;
  Random& own = trial_.own;
  void* const nowhere = reinterpret_cast<void*>(16);
  if (own.chance(2)) words->buffer = own.pick<void*>({nullptr, nowhere, MPI_IN_PLACE});
  if (own.chance(2)) words->type = MPI_DATATYPE_NULL;
  if (own.chance(2)) words->counts.assign(words->counts.size(), own.chance(2) ? -1 : INT_MAX);
  if (own.chance(2)) words->arrays = own.chance(2) ? nullptr : nowhere;
}

void Mover::verify(Side* input, Side* output, bool receives) {
  phase = Phase::comparing;
  for (size_t i = 0; receives && i < output->blocks.size(); ++i) {
    output->before.paint(i, 0, output->blocks[i].count, Fate::defined, output->type.map,
                         &output->fates);
  }
  if (input) input->take_ours();
  output->take_ours();
  damage(trial_, input, output);
  output->take_theirs();
  if (input) input->verify(trial_, "the input", true);
  output->verify(trial_, "the output", true);
}

Rest Mover::broadcast() {
  Side& side = make({draw_units()}, false);
  if (trial_.own.chance(6) && !trial_.is_tame) side.use_absolute_addresses();
  const auto call = [this](Phase in, auto function, const Words& to) {
    phase = in;
    function(to.buffer, to.count(), to.type, trial_.root, trial_.comm_in(in));
  };
  call(Phase::in_sluice, OURS(trial_, MPI_Bcast, MPI_Ibcast), lend(trial_, side.ours()));
  return [this, call, &side] {
    call(Phase::in_mpi, IN_MPI(MPI_Bcast), side.theirs());
    verify(nullptr, &side);
  };
}

std::vector<size_t> Mover::draw_blocks(size_t blocks, bool vector) {
  std::vector<size_t> units(blocks);
  const bool holes = trial_.shared.chance(3);
  for (size_t& n : units) {
    n = vector || &n == units.data() ? draw_units() : units[0];
    if (vector && holes && trial_.shared.chance(2)) n = 0;
  }
  return units;
}

Rest Mover::allgather(bool vector) {
  const std::vector<size_t> units = draw_blocks(trial_.size(), vector);
  Side &input = make({units[trial_.me()]}, false), &output = make(units, vector);
  if (trial_.own.chance(6) && !trial_.is_tame) output.use_absolute_addresses();
  const auto call = [this, vector](Phase in, auto gather, auto gatherv, const Words& from,
                                   const Words& to) {
    phase = in;
    if (vector) {
      gatherv(from.buffer, from.count(), from.type, to.buffer, to.all_counts(), to.places(),
              to.type, trial_.comm_in(in));
    } else {
      gather(from.buffer, from.count(), from.type, to.buffer, to.count(), to.type,
             trial_.comm_in(in));
    }
  };
  Words from = lend(trial_, input.ours());
  if (trial_.in_place) from.buffer = MPI_IN_PLACE;
  call(Phase::in_sluice, OURS(trial_, MPI_Allgather, MPI_Iallgather),
       OURS(trial_, MPI_Allgatherv, MPI_Iallgatherv), from, lend(trial_, output.ours()));
  return [this, call, &input, &output] {
    call(Phase::in_mpi, IN_MPI(MPI_Allgather), IN_MPI(MPI_Allgatherv),
         trial_.in_place ? output.untouched(trial_.me()) : input.untouched(), output.theirs());
    verify(&input, &output);
  };
}

Rest Mover::alltoall(bool vector) {
  const size_t size = trial_.size(), me = trial_.me();
  most_units_ /= size;
  // units[i][j]: sent from i to j. In place, the same number comes back.
  std::vector<std::vector<size_t>> units;
  for (size_t i = 0; i < size; ++i) {
    units.push_back(vector || i == 0 ? draw_blocks(size, vector) : units[0]);
    for (size_t j = 0; trial_.in_place && j < i; ++j) units[i][j] = units[j][i];
  }
  std::vector<size_t> incoming;
  for (size_t i = 0; i < size; ++i) incoming.push_back(units[i][me]);
  Side &input = make(units[me], vector), &output = make(incoming, vector);
  if (trial_.own.chance(6) && !trial_.is_tame) output.use_absolute_addresses();
  const auto call = [this, vector](Phase in, auto exchange, auto exchangev, const Words& from,
                                   const Words& to) {
    phase = in;
    if (vector) {
      exchangev(from.buffer, from.all_counts(), from.places(), from.type, to.buffer,
                to.all_counts(), to.places(), to.type, trial_.comm_in(in));
    } else {
      exchange(from.buffer, from.count(), from.type, to.buffer, to.count(), to.type,
               trial_.comm_in(in));
    }
  };
  Words from = lend(trial_, input.ours());
  if (trial_.in_place) from.buffer = MPI_IN_PLACE;
  call(Phase::in_sluice, OURS(trial_, MPI_Alltoall, MPI_Ialltoall),
       OURS(trial_, MPI_Alltoallv, MPI_Ialltoallv), from, lend(trial_, output.ours()));
  return [this, call, &input, &output] {
    call(Phase::in_mpi, IN_MPI(MPI_Alltoall), IN_MPI(MPI_Alltoallv),
         trial_.in_place ? output.untouched() : input.untouched(), output.theirs());
    verify(&input, &output);
  };
}

// `all` has a block for each rank, and means nothing except at the root; `own` is one rank's block,
// and means nothing in place.
Rest Mover::move_by_root(bool gathers, bool vector) {
  const bool is_root = trial_.is_root(), in_place = trial_.in_place && is_root;
  const std::vector<size_t> units = draw_blocks(trial_.size(), vector);
  Side &own = make({units[trial_.me()]}, false), &all = make(units, vector);
  if (trial_.own.chance(6) && !trial_.is_tame) (gathers ? all : own).use_absolute_addresses();
  const auto call = [this, gathers, vector](Phase in, auto gather, auto gatherv, auto scatter,
                                            auto scatterv, const Words& one, const Words& many) {
    phase = in;
    const int root = trial_.root;
    const MPI_Comm comm = trial_.comm_in(in);
    if (gathers && vector) {
      gatherv(one.buffer, one.count(), one.type, many.buffer, many.all_counts(), many.places(),
              many.type, root, comm);
    } else if (gathers) {
      gather(one.buffer, one.count(), one.type, many.buffer, many.count(), many.type, root, comm);
    } else if (vector) {
      scatterv(many.buffer, many.all_counts(), many.places(), many.type, one.buffer, one.count(),
               one.type, root, comm);
    } else {
      scatter(many.buffer, many.count(), many.type, one.buffer, one.count(), one.type, root, comm);
    }
  };
  Words one = lend(trial_, own.ours()), many = lend(trial_, all.ours());
  if (!is_root) garble(&many);
  if (in_place) garble(&one), one.buffer = MPI_IN_PLACE;
  call(Phase::in_sluice, OURS(trial_, MPI_Gather, MPI_Igather),
       OURS(trial_, MPI_Gatherv, MPI_Igatherv), OURS(trial_, MPI_Scatter, MPI_Iscatter),
       OURS(trial_, MPI_Scatterv, MPI_Iscatterv), one, many);
  return [=, this, &own, &all] {
    const bool takes_block = gathers && in_place;
    call(Phase::in_mpi, IN_MPI(MPI_Gather), IN_MPI(MPI_Gatherv), IN_MPI(MPI_Scatter),
         IN_MPI(MPI_Scatterv),
         takes_block ? all.untouched(trial_.me())
         : gathers   ? own.untouched()
                     : own.theirs(),
         gathers ? all.theirs() : all.untouched());
    gathers ? verify(&own, &all, is_root) : verify(&all, &own, !in_place);
  };
}

// No rank may leave before the last one has entered. (Ranks share the monotonic clock.)
Rest barrier(Trial& trial) {
  if (trial.own.chance(4)) usleep(static_cast<useconds_t>(trial.own.below(2000)));
  const double came = Trial::now();
  phase = Phase::in_sluice;
  if (trial.in_flight) {
    start_call(trial, EITHER(trial, MPI_Ibarrier), EITHER(trial, MPI_Ibarrier), trial.comm.handle);
  } else {
    EITHER(trial, MPI_Barrier)(trial.comm.handle);
    trial.ended = Trial::now();
  }
  return [&trial, came] {
    double last = 0;
    phase = Phase::in_mpi;
    IN_MPI(MPI_Allreduce)(&came, &last, 1, MPI_DOUBLE, MPI_MAX, trial.comm.in_mpi);
    const bool spoilt = trial.damage == Damage::result;
    if (trial.ended < last || (spoilt && trial.is_root()))
      trial.complain("left before all had come");
  };
}

Rest start_by(Mover& mover, const std::string& name) {
  const bool vector = name.back() == 'v';
  if (name == "MPI_Bcast") return mover.broadcast();
  if (name.starts_with("MPI_Allgather")) return mover.allgather(vector);
  if (name.starts_with("MPI_Alltoall")) return mover.alltoall(vector);
  return mover.move_by_root(name.starts_with("MPI_Gather"), vector);
}

}  // namespace

Rest start_moving(Trial& trial) {
  if (trial.function == "MPI_Barrier") return barrier(trial);
  const auto mover = std::make_shared<Mover>(trial);
  return [mover, rest = start_by(*mover, trial.function)] { rest(); };
}

}  // namespace test
