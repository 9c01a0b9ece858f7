// SPDX-License-Identifier: BSD-3-Clause
#include "src/mpi/typemap.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "src/memory/numbers.h"
#include "src/mpi/datatype.h"
#include "src/mpi/thread_state.h"

namespace sluice {
namespace {

constexpr int unknown = -1;  // stands for a combiner that MPI does not report

bool is_predefined_combiner(int combiner) {
  constexpr int predefined[] = {MPI_COMBINER_NAMED, MPI_COMBINER_F90_REAL, MPI_COMBINER_F90_COMPLEX,
                                MPI_COMBINER_F90_INTEGER};
  return std::ranges::find(predefined, combiner) != std::end(predefined);
}

int combiner_of(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = unknown;
  // Without _c the function has an error for types that were constructed with large counts.
  MPI_Count few = 0, places = 0, large = 0, kinds = 0;
  const auto get_envelope = real().Type_get_envelope_c;
  if (get_envelope && !get_envelope(type, &few, &places, &large, &kinds, &combiner)) {
    return combiner;
  }
  return real().Type_get_envelope(type, &integers, &addresses, &types, &combiner) ? unknown
                                                                                  : combiner;
}

// The call that constructed a type, and its arguments.
class Construction {
 public:
  explicit Construction(MPI_Datatype type);
  ~Construction();
  Construction(const Construction&) = delete;
  Construction& operator=(const Construction&) = delete;

  int combiner = MPI_COMBINER_NAMED;
  // The numeric arguments in MPI's order: in `bytes` those that are displacements, strides or
  // extents in bytes, in `numbers` all others.
  Numbers numbers, bytes;
  std::vector<MPI_Datatype> types;  // freed by the destructor unless predefined

 private:
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> large_;
  void get_plain(MPI_Datatype type);
  void get_large(MPI_Datatype type, MPI_Count integers, MPI_Count addresses, MPI_Count large,
                 MPI_Count kinds);
  void sort_large();
};

Construction::Construction(MPI_Datatype type) {
  MPI_Count integers = 0, addresses = 0, large = 0, kinds = 0;
  const auto get_envelope = real().Type_get_envelope_c;
  if (!get_envelope) {
    get_plain(type);
  } else if (get_envelope(type, &integers, &addresses, &large, &kinds, &combiner)) {
    combiner = unknown;
  } else if (large > 0) {
    get_large(type, integers, addresses, large, kinds);
  } else if (!is_predefined_combiner(combiner)) {
    get_plain(type);
  }
}

Construction::~Construction() {
  for (MPI_Datatype& type : types) {
    const int of_type = combiner_of(type);
    if (of_type != unknown && !is_predefined_combiner(of_type)) real().Type_free(&type);
  }
}

void Construction::get_plain(MPI_Datatype type) {
  int integers = 0, addresses = 0, kinds = 0;
  if (real().Type_get_envelope(type, &integers, &addresses, &kinds, &combiner)) combiner = unknown;
  if (combiner == unknown || is_predefined_combiner(combiner)) return;
  integers_.resize(static_cast<size_t>(integers));
  addresses_.resize(static_cast<size_t>(addresses));
  types.resize(static_cast<size_t>(kinds));
  if (real().Type_get_contents(type, integers, addresses, kinds, integers_.data(),
                               addresses_.data(), types.data())) {
    types.clear();
    combiner = unknown;
    return;
  }
  numbers = integers_.data();
  bytes = addresses_.data();
}

void Construction::get_large(MPI_Datatype type, MPI_Count integers, MPI_Count addresses,
                             MPI_Count large, MPI_Count kinds) {
  integers_.resize(static_cast<size_t>(integers));
  addresses_.resize(static_cast<size_t>(addresses));
  large_.resize(static_cast<size_t>(large));
  types.resize(static_cast<size_t>(kinds));
  if (real().Type_get_contents_c(type, integers, addresses, large, kinds, integers_.data(),
                                 addresses_.data(), large_.data(), types.data())) {
    types.clear();
    combiner = unknown;
    return;
  }
  sort_large();
}

// For types constructed with large counts MPI returns sizes, counts and byte displacements in one
// list.
void Construction::sort_large() {
  const auto split_at = [&](size_t place) {
    numbers = large_.data();
    bytes = large_.data() + place;
  };
  const auto insert_at = [&](ptrdiff_t place) {
    large_.insert(large_.begin(), integers_.begin(), integers_.begin() + place);
    large_.insert(large_.end(), integers_.begin() + place, integers_.end());
    numbers = large_.data();
  };
  switch (combiner) {
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return split_at(2);
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
      return split_at(1 + static_cast<size_t>(large_[0]));
    case MPI_COMBINER_RESIZED:
      return split_at(0);
    case MPI_COMBINER_SUBARRAY:
      return insert_at(1);
    case MPI_COMBINER_DARRAY:
      return insert_at(3);
    default:
      numbers = large_.data();
  }
}

// A type whose layout is known.
struct Component {
  Layout layout;
  ptrdiff_t extent = 0;

  Layout times(MPI_Count n) const { return layout.repeated(static_cast<size_t>(n), extent); }
};
using Components = std::map<MPI_Datatype, Component>;

Layout read_vector(const Construction& made, const Component& part) {
  const ptrdiff_t stride = made.combiner == MPI_COMBINER_VECTOR
                               ? static_cast<ptrdiff_t>(made.numbers[2]) * part.extent
                               : static_cast<ptrdiff_t>(made.bytes[0]);
  return part.times(made.numbers[1]).repeated(static_cast<size_t>(made.numbers[0]), stride);
}

// The four constructors with a list of displacements, in extents or in bytes. Blocks of equal
// length share a layout.
Layout read_indexed(const Construction& made, const Component& part) {
  const auto count = static_cast<size_t>(made.numbers[0]);
  const bool one_length =
      made.combiner == MPI_COMBINER_INDEXED_BLOCK || made.combiner == MPI_COMBINER_HINDEXED_BLOCK;
  const bool in_extents =
      made.combiner == MPI_COMBINER_INDEXED || made.combiner == MPI_COMBINER_INDEXED_BLOCK;
  const size_t first = one_length ? 2 : 1 + count;
  Layout::List list(count);
  std::map<MPI_Count, Layout> known;
  for (size_t i = 0; i < count; ++i) {
    const auto at = in_extents ? static_cast<ptrdiff_t>(made.numbers[first + i]) * part.extent
                               : static_cast<ptrdiff_t>(made.bytes[i]);
    const MPI_Count length = made.numbers[one_length ? 1 : 1 + i];
    if (part.layout.is_run()) {
      list.append(at, part.times(length));
      continue;
    }
    const auto [block, is_new] = known.try_emplace(length);
    if (is_new) block->second = part.times(length);
    list.append(at, block->second);
  }
  return std::move(list).finish();
}

Layout read_struct(const Construction& made, const Components& parts) {
  Layout::List list(made.types.size());
  for (size_t i = 0; i < made.types.size(); ++i) {
    list.append(static_cast<ptrdiff_t>(made.bytes[i]),
                parts.at(made.types[i]).times(made.numbers[1 + i]));
  }
  return std::move(list).finish();
}

// The dimensions of an array, the fastest varying first.
std::vector<size_t> by_speed(size_t dimensions, MPI_Count order) {
  std::vector<size_t> list(dimensions);
  for (size_t i = 0; i < dimensions; ++i) {
    list[i] = order == MPI_ORDER_C ? dimensions - 1 - i : i;
  }
  return list;
}

Layout read_subarray(const Construction& made, const Component& part) {
  const auto dimensions = static_cast<size_t>(made.numbers[0]);
  const Numbers sizes = made.numbers.from(1), taken = sizes.from(dimensions);
  const Numbers starts = taken.from(dimensions);
  Layout layout = part.layout;
  ptrdiff_t at = 0, stride = part.extent;
  for (const size_t i : by_speed(dimensions, starts[dimensions])) {
    layout = layout.repeated(static_cast<size_t>(taken[i]), stride);
    at += static_cast<ptrdiff_t>(starts[i]) * stride;
    stride *= static_cast<ptrdiff_t>(sizes[i]);
  }
  return layout.moved(at);
}

// One dimension of a distributed array: those of `size` rows that process `at` of `of` processes
// has.
Layout deal_out(const Layout& row, ptrdiff_t stride, MPI_Count size, MPI_Count distribution,
                MPI_Count argument, MPI_Count at, MPI_Count of) {
  MPI_Count block = argument;
  if (distribution == MPI_DISTRIBUTE_NONE) {
    block = size;
  } else if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
    block = distribution == MPI_DISTRIBUTE_BLOCK ? (size + of - 1) / of : 1;
  }
  const MPI_Count first = at * block, round = of * block;
  if (first >= size) return {};
  const MPI_Count whole = size < first + block ? 0 : (size - first - block) / round + 1;
  const MPI_Count next = first + whole * round;
  const MPI_Count rest = next < size ? std::min(block, size - next) : 0;
  const auto blocks = row.repeated(static_cast<size_t>(block), stride);
  Layout::List list;
  list.append(static_cast<ptrdiff_t>(first) * stride,
              blocks.repeated(static_cast<size_t>(whole), static_cast<ptrdiff_t>(round) * stride));
  list.append(static_cast<ptrdiff_t>(next) * stride,
              row.repeated(static_cast<size_t>(rest), stride));
  return std::move(list).finish();
}

Layout read_distributed(const Construction& made, const Component& part) {
  const auto dimensions = static_cast<size_t>(made.numbers[2]);
  const Numbers sizes = made.numbers.from(3), distributions = sizes.from(dimensions);
  const Numbers arguments = distributions.from(dimensions), processes = arguments.from(dimensions);
  std::vector<MPI_Count> at(dimensions);
  MPI_Count rank = made.numbers[1];
  for (size_t i = dimensions; i-- > 0; rank /= processes[i]) at[i] = rank % processes[i];
  Layout layout = part.layout;
  ptrdiff_t stride = part.extent;
  for (const size_t i : by_speed(dimensions, processes[dimensions])) {
    layout =
        deal_out(layout, stride, sizes[i], distributions[i], arguments[i], at[i], processes[i]);
    stride *= static_cast<ptrdiff_t>(sizes[i]);
  }
  return layout;
}

// Numbers the bytes of an element and packs it, one digit (of base 256) at a time: the packed
// numbers tell where each byte came from.
bool probe(const Datatype& type, size_t span, Layout* layout) {
  constexpr size_t longest = std::numeric_limits<int>::max();
  if (type.size > longest || span > longest) return false;
  std::vector<unsigned char> image(span), packed(type.size);
  std::vector<size_t> places(type.size);
  for (unsigned digit = 0; digit < 4 && (digit == 0 || span >> 8 * digit > 0); ++digit) {
    for (size_t i = 0; i < span; ++i) image[i] = static_cast<unsigned char>(i >> 8 * digit);
    int position = 0;
    if (real().Pack(offset_by(image.data(), -type.start), 1, type.handle, packed.data(),
                    static_cast<int>(type.size), &position, real().comm_self) ||
        static_cast<size_t>(position) != type.size) {
      return false;
    }
    for (size_t i = 0; i < type.size; ++i) places[i] |= size_t{packed[i]} << 8 * digit;
  }
  Layout::List list;
  for (const size_t place : places) {
    list.append(type.start + static_cast<ptrdiff_t>(place), Layout::run(1));
  }
  *layout = std::move(list).finish();
  return true;
}

// Types without components: predefined ones, most of which are runs, and those whose constructor is
// not known here.
bool read_undivided(MPI_Datatype handle, bool predefined, Layout* layout) {
  Datatype type;
  MPI_Count start = 0, span = 0;
  if (!measure_datatype(handle, &type) || real().Type_get_true_extent_x(handle, &start, &span)) {
    return false;
  }
  if (!predefined || static_cast<size_t>(span) != type.size) {
    return probe(type, static_cast<size_t>(span), layout);
  }
  *layout = Layout::run(type.size).moved(type.start);
  return true;
}

// The predefined types that were read. MPI never frees them, and most types are made of them.
class PredefinedTypes {
 public:
  bool find(MPI_Datatype type, Component* component) {
    const std::lock_guard lock(mutex_);
    const auto found = components_.find(type);
    if (found == components_.end()) return false;
    *component = found->second;
    return true;
  }
  void add(MPI_Datatype type, const Component& component) {
    const std::lock_guard lock(mutex_);
    components_.emplace(type, component);
  }

 private:
  std::mutex mutex_;
  Components components_;
};

PredefinedTypes& predefined() {
  static PredefinedTypes& all = *new PredefinedTypes;  // outlives exit()
  return all;
}

// A type that is being read, and those of its component types that are known.
struct Unread {
  explicit Unread(MPI_Datatype type) : type(type), made(type) {}

  MPI_Datatype type;
  Construction made;
  Components parts;
  size_t next = 0;  // index in made.types: the component to read next

  bool finish(Component* component) const;
};

// Builds the type from its parts, which are all known.
bool Unread::finish(Component* component) const {
  MPI_Count lower = 0, size = 0;
  if (real().Type_get_extent_x(type, &lower, &size)) return false;
  component->extent = static_cast<ptrdiff_t>(size);
  Layout& layout = component->layout;
  const Component part = parts.empty() ? Component() : parts.begin()->second;
  switch (made.combiner) {
    case MPI_COMBINER_STRUCT:
      layout = read_struct(made, parts);
      return true;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      layout = part.layout;
      return true;
    case MPI_COMBINER_CONTIGUOUS:
      layout = part.times(made.numbers[0]);
      return true;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
      layout = read_vector(made, part);
      return true;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      layout = read_indexed(made, part);
      return true;
    case MPI_COMBINER_SUBARRAY:
      layout = read_subarray(made, part);
      return true;
    case MPI_COMBINER_DARRAY:
      layout = read_distributed(made, part);
      return true;
    default:
      return read_undivided(type, is_predefined_combiner(made.combiner), &layout);
  }
}

}  // namespace

// Does not recurse: programs may nest types thousands deep.
bool read_layout(MPI_Datatype type, Layout* layout) {
  std::vector<std::unique_ptr<Unread>> unread;
  unread.push_back(std::make_unique<Unread>(type));
  while (true) {
    Unread& top = *unread.back();
    if (top.next < top.made.types.size()) {
      const MPI_Datatype part = top.made.types[top.next];
      Component known;
      if (top.parts.contains(part)) {
        ++top.next;
      } else if (predefined().find(part, &known)) {
        top.parts.emplace(part, std::move(known));
      } else {
        unread.push_back(std::make_unique<Unread>(part));
      }
      continue;
    }
    Component done;
    if (!top.finish(&done)) return false;
    const MPI_Datatype handle = top.type;
    if (is_predefined_combiner(top.made.combiner)) predefined().add(handle, done);
    unread.pop_back();
    if (unread.empty()) {
      *layout = std::move(done.layout);
      return true;
    }
    unread.back()->parts.emplace(handle, std::move(done));
  }
}

}  // namespace sluice
