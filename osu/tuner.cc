// SPDX-License-Identifier: BSD-3-Clause
#include "osu/tuner.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "osu/contest.h"
#include "sluice/sluice.h"
#include "src/base/file.h"
#include "src/base/plain_text.h"

namespace sluice::osu {
namespace {

constexpr double between_reports = 2;  // seconds
constexpr size_t coarsest = 8;

// The points that one Contest measures.
struct Block {
  size_t subject;
  int ranks;
  std::vector<size_t> sizes;
};

std::string key_of(const std::string& collective, int ranks, size_t bytes) {
  return collective + " " + std::to_string(ranks) + " " + std::to_string(bytes);
}

// The log file; only rank 0 has it open.
class Journal {
 public:
  // Reads what an earlier run left. Returns an error message, or an empty string.
  std::string open(const std::string& path, const std::string& job) {
    path_ = path;
    file_.reset(std::fopen(path.c_str(), "a+e"));
    if (!file_) return path + ": " + std::strerror(errno);
    const Result<std::string> text = read_file(path);
    if (!text.ok()) return text.status().message();
    size_t whole = 0;  // an incomplete last line is truncated
    for (size_t end; (end = text->find('\n', whole)) != text->npos; whole = end + 1) {
      if (std::string wrong = parse(text->substr(whole, end - whole), job); !wrong.empty()) {
        return path + wrong;
      }
    }
    if (ftruncate(fileno(file_.get()), static_cast<off_t>(whole)) != 0)
      return path + ": is no file";
    if (whole == 0) write("job " + job);
    return trouble_;
  }
  void write(const std::string& line) {
    if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0) {
      trouble_ = path_ + " cannot be written: " + std::strerror(errno);
    }
  }
  // What went wrong in writing, or an empty string.
  const std::string& trouble() const { return trouble_; }
  const std::set<std::string>& done() const { return done_; }

 private:
  std::string parse(const std::string& line, const std::string& job) {
    char collective[32] = "";
    int ranks = 0;
    size_t bytes = 0;
    if (line.starts_with("job ") && line.substr(4) != job) {
      return " is of another job: " + line.substr(4) + ". This is " + job +
             "; name another file with --log, or remove it";
    }
    if (std::sscanf(line.c_str(), "point %31s %d %zu", collective, &ranks, &bytes) == 3) {
      done_.insert(key_of(collective, ranks, bytes));
    } else if (!line.starts_with("job ")) {
      return " is no log of sluice tune: " + line.substr(0, 40);
    }
    return "";
  }

  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file_;
  std::string path_, trouble_;
  std::set<std::string> done_;
};

// An error message if no such file can be written; else an empty string.
std::string find_obstacle(const std::string& path) {
  const bool is_there = access(path.c_str(), F_OK) == 0;
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "ae"), std::fclose);
  if (!file) return path + " cannot be written: " + std::strerror(errno);
  if (!is_there) (void)unlink(path.c_str());
  return "";
}

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    control_ = left_to_mpi(MPI_COMM_WORLD);
    began_ = MPI_Wtime();
  }
  ~Tuner() { MPI_Comm_free(&control_); }
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  bool run();

 private:
  static MPI_Comm left_to_mpi(MPI_Comm comm);
  bool all_agree_on(const std::string& trouble);
  std::string find_trouble();
  void find_hosts();
  size_t hosts_of(int ranks) const;
  std::string describe_job() const;
  void share_what_is_done();
  std::vector<int> numbers_of_ranks() const;
  std::vector<size_t> sizes_of_pass(size_t stride, const std::string& name, int ranks) const;
  std::vector<Block> plan();
  void run_block(const Block& block);
  void compete(const Block& block, MPI_Comm members, MPI_Comm control);
  void record(const Block& block, size_t bytes, const Contest::Result& result);
  void report(const Block& block, size_t bytes);
  void wait_for_all();

  const TuneOptions& options_;
  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL;
  Journal journal_;
  std::vector<std::string> hosts_;  // on rank 0, by rank
  std::string done_;                // keys of the points in the log, one a line
  size_t total_ = 0, made_ = 0, resumed_ = 0;
  double began_ = 0, reported_ = 0;
  int stop_ = 0;
};

MPI_Comm Tuner::left_to_mpi(MPI_Comm comm) {
  MPI_Info info;
  MPI_Comm copy;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sluice", "off");
  MPI_Comm_dup_with_info(comm, info, &copy);
  MPI_Info_free(&info);
  return copy;
}

void Tuner::find_hosts() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> all(static_cast<size_t>(size_) * sizeof name);
  MPI_Gather(name, sizeof name, MPI_CHAR, all.data(), sizeof name, MPI_CHAR, 0, control_);
  for (size_t i = 0; i < all.size(); i += sizeof name) hosts_.emplace_back(&all[i]);
}

size_t Tuner::hosts_of(int ranks) const {
  return std::set<std::string>(hosts_.begin(), hosts_.begin() + ranks).size();
}

std::string Tuner::describe_job() const {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string mpi(version, std::strcspn(version, ",\n"));
  std::replace(mpi.begin(), mpi.end(), '\t', ' ');
  const size_t hosts = hosts_of(size_);
  return std::to_string(size_) + " ranks on " + std::to_string(hosts) +
         (hosts == 1 ? " host (" : " hosts (") + hosts_[0] + "), Sluice " SLUICE_VERSION ", " + mpi;
}

// Called on rank 0 only. Returns an error message, or an empty string.
std::string Tuner::find_trouble() {
  if (!last_algorithm(MPI_COMM_WORLD)) return "Sluice is not in the program: start `sluice tune`";
  if (size_ < 2) return "there is 1 rank: start it as `mpirun -n 4 sluice tune -o FILE`";
  for (const int ranks : options_.ranks) {
    if (ranks < 2 || ranks > size_) {
      return "--ranks " + std::to_string(ranks) + ": the job has " + std::to_string(size_);
    }
  }
  for (const std::string& path : options_.outputs) {
    if (std::string obstacle = find_obstacle(path); !obstacle.empty()) return obstacle;
  }
  return "";
}

bool Tuner::all_agree_on(const std::string& trouble) {
  int bad = trouble.empty() ? 0 : 1;
  if (bad) std::fprintf(stderr, "sluice tune: error: %s\n", trouble.c_str());
  MPI_Bcast(&bad, 1, MPI_INT, 0, control_);
  return bad == 0;
}

void Tuner::share_what_is_done() {
  for (const std::string& key : journal_.done()) done_ += key + "\n";
  unsigned long length = done_.size();
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG, 0, control_);
  done_.resize(length);
  MPI_Bcast(done_.data(), static_cast<int>(length), MPI_CHAR, 0, control_);
}

std::vector<int> Tuner::numbers_of_ranks() const {
  if (!options_.ranks.empty()) return options_.ranks;
  std::set<int> numbers{size_};
  for (int power = 2; power < size_; power *= 2) {
    numbers.insert(power);
    if (power / 2 * 3 < size_) numbers.insert(power / 2 * 3);
  }
  return {numbers.begin(), numbers.end()};
}

// The sizes of a pass: first every eighth, then those halfway between, and so on.
std::vector<size_t> Tuner::sizes_of_pass(size_t stride, const std::string& name, int ranks) const {
  std::vector<size_t> sizes;
  if (!Contest::is_sized(name)) {
    if (stride == coarsest) sizes.push_back(0);
    return sizes;
  }
  for (size_t at = 0; at < options_.sizes.size(); at += stride) {
    const bool earlier = stride < coarsest && at % (2 * stride) == 0;
    const size_t bytes = options_.sizes[at];
    if (!earlier && Contest::has_size(name, bytes, ranks)) sizes.push_back(bytes);
  }
  return sizes;
}

// Coarse sizes first, so that an interrupted or short run has measured something of everything.
std::vector<Block> Tuner::plan() {
  std::set<std::string> done;
  for (size_t at = 0, end; (end = done_.find('\n', at)) != done_.npos; at = end + 1) {
    done.insert(done_.substr(at, end - at));
  }
  std::vector<Block> blocks;
  for (size_t stride = coarsest; stride > 0; stride /= 2) {
    for (size_t i = 0; i < options_.subjects.size(); ++i) {
      const std::string& name = options_.subjects[i].collective;
      for (const int ranks : numbers_of_ranks()) {
        Block block{i, ranks, {}};
        for (const size_t bytes : sizes_of_pass(stride, name, ranks)) {
          ++total_;
          if (done.contains(key_of(name, ranks, bytes))) {
            ++made_;
          } else {
            block.sizes.push_back(bytes);
          }
        }
        if (!block.sizes.empty()) blocks.push_back(std::move(block));
      }
    }
  }
  return blocks;
}

// Prints what is measured now, the progress and the time left.
void Tuner::report(const Block& block, size_t bytes) {
  const double now = MPI_Wtime() - began_;
  if (rank_ != 0 || (reported_ > 0 && now - reported_ < between_reports)) return;
  const size_t here = made_ - resumed_;
  std::string left = here > 0
                         ? std::to_string(static_cast<long>(now / static_cast<double>(here) *
                                                            static_cast<double>(total_ - made_))) +
                               " s to go"
                         : "";
  std::fprintf(stderr, "sluice tune: %zu of %zu: %s, %d ranks, %zu bytes%s%s\n", made_ + 1, total_,
               options_.subjects[block.subject].collective.c_str(), block.ranks, bytes,
               left.empty() ? "" : "; about ", left.c_str());
  reported_ = now;
}

void Tuner::record(const Block& block, size_t bytes, const Contest::Result& result) {
  ++made_;
  if (rank_ != 0) return;
  std::string line = "point " +
                     key_of(options_.subjects[block.subject].collective, block.ranks, bytes) + " " +
                     result.transport + " hosts=" + std::to_string(hosts_of(block.ranks)) +
                     " incumbent=" + result.incumbent;
  for (const auto& [name, time] : result.times) {
    line += " " + name + "=" + decimal(time, 4);
  }
  journal_.write(line + " end");
}

void Tuner::compete(const Block& block, MPI_Comm members, MPI_Comm control) {
  const TuneOptions::Subject& subject = options_.subjects[block.subject];
  Contest contest(subject.collective, subject.candidates, members, control);
  for (const size_t bytes : block.sizes) {
    if (stop_) break;
    report(block, bytes);
    record(block, bytes, contest.run(bytes, options_.rounds));
    const bool is_late = options_.seconds > 0 && MPI_Wtime() - began_ > options_.seconds;
    stop_ = is_late || !journal_.trouble().empty() ? 1 : 0;
    MPI_Bcast(&stop_, 1, MPI_INT, 0, control);
  }
}

// Waits for all ranks. Idle ranks sleep, because the measuring ranks need the processors.
void Tuner::wait_for_all() {
  MPI_Request request;
  MPI_Ibarrier(control_, &request);
  for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(1000);
  MPI_Bcast(&stop_, 1, MPI_INT, 0, control_);
}

void Tuner::run_block(const Block& block) {
  MPI_Comm members;
  MPI_Comm_split(control_, rank_ < block.ranks ? 0 : MPI_UNDEFINED, rank_, &members);
  if (members != MPI_COMM_NULL) {
    MPI_Comm control = left_to_mpi(members);
    compete(block, members, control);
    MPI_Comm_free(&control);
    MPI_Comm_free(&members);
  }
  wait_for_all();
}

bool Tuner::run() {
  find_hosts();
  const std::string job = describe_job();
  std::string trouble = rank_ == 0 ? find_trouble() : "";
  if (rank_ == 0 && trouble.empty()) trouble = journal_.open(options_.log, job);
  if (!all_agree_on(trouble)) return false;
  share_what_is_done();
  const std::vector<Block> blocks = plan();
  resumed_ = made_;
  if (rank_ == 0 && made_ > 0) {
    std::fprintf(stderr, "sluice tune: %zu of %zu points are in %s already\n", made_, total_,
                 options_.log.c_str());
  }
  for (const Block& block : blocks) {
    if (!stop_) run_block(block);
  }
  if (!all_agree_on(journal_.trouble())) return false;
  if (rank_ == 0) {
    std::fprintf(stderr, "sluice tune: %zu of %zu points, %.0f s%s\n", made_, total_,
                 MPI_Wtime() - began_,
                 made_ < total_ ? ": the time is up; the same command goes on" : "");
  }
  return true;
}

}  // namespace

bool tune(const TuneOptions& options) { return Tuner(options).run(); }

}  // namespace sluice::osu
