// SPDX-License-Identifier: BSD-3-Clause
//
// osu_tune: started by `sluice tune` on every rank, with Sluice preloaded. It measures collectives
// with all candidates in turn and appends a line per point to a log (src/tool/tuning.h). A
// candidate is a duplicate of the communicator with a hint to use that algorithm, or MPI's own
// collective. Points already in the log are not measured again. At the end rank 0 execs the command
// after "--", which makes rules from the log.
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "osu/tuner.h"

namespace {

using sluice::osu::TuneOptions;

// "allreduce=flat,ring,mpi"
void read_candidates(const std::vector<std::string>& words, TuneOptions* options) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw CLI::ValidationError("--candidates", word);
    options->subjects.push_back(
        {word.substr(0, equals), CLI::detail::split(word.substr(equals + 1), ',')});
  }
}

void add_options(CLI::App* app, TuneOptions* options) {
  app->add_option("--log", options->log, "the file that points are added to")->required();
  app->add_option_function<std::vector<std::string>>(
         "--candidates",
         [options](const std::vector<std::string>& words) { read_candidates(words, options); },
         "COLLECTIVE=NAME,NAME...")
      ->required();
  app->add_option("--ranks", options->ranks, "numbers of ranks; all without it")->delimiter(',');
  app->add_option("--sizes", options->sizes, "bytes, ascending")->delimiter(',')->required();
  app->add_option("--time", options->seconds, "seconds after which no point is begun; 0: no limit");
  app->add_option("--rounds", options->rounds, "samples of each candidate");
  app->add_option("--writes", options->outputs, "a file that THEN writes: it must be possible")
      ->take_all();
  app->add_option("THEN", options->then, "what rank 0 becomes");
  app->positionals_at_end();
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  unsetenv("LD_PRELOAD");
  execv(words.front(), words.data());
  std::perror(words.front());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  TuneOptions options;
  CLI::App app("Measures collectives by each of Sluice's algorithms; started by `sluice tune`.",
               "osu_tune");
  add_options(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool good = sluice::osu::tune(options);
  MPI_Finalize();
  if (good && rank == 0 && !options.then.empty()) become(options.then);
  return good ? 0 : 1;
}
