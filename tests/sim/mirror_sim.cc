// mirror_sim --worlds N [--seed S] [--mutation NAME] [--verbose]   runs worlds S .. S+N-1
// mirror_sim --mutations N   proves that each deliberate mistake is found within N worlds
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "mirror/mutation.h"
#include "tests/sim/world.h"

namespace mirror {
Mutation active_mutation = Mutation::none;
}

namespace {

using mirror::Mutation;

struct Named {
  Mutation mutation;
  const char* name;
};
constexpr Named mutations[] = {
    {Mutation::accept_stale_ticket, "accept_stale_ticket"},
    {Mutation::skip_bump_at_stop, "skip_bump_at_stop"},
    {Mutation::markers_before_bump, "markers_before_bump"},
    {Mutation::position_not_persisted, "position_not_persisted"},
    {Mutation::position_not_frozen, "position_not_frozen"},
    {Mutation::allow_before_persist, "allow_before_persist"},
    {Mutation::skip_refuse_writes, "skip_refuse_writes"},
    {Mutation::forget_cut_on_failure, "forget_cut_on_failure"},
    {Mutation::cut_to_source_end_only, "cut_to_source_end_only"},
    {Mutation::append_above_leader_epoch, "append_above_leader_epoch"},
    {Mutation::skip_inspect_on_resume, "skip_inspect_on_resume"},
    {Mutation::stop_waits_in_failed, "stop_waits_in_failed"},
    {Mutation::stop_can_fail, "stop_can_fail"},
    {Mutation::skip_settle_groups, "skip_settle_groups"},
    {Mutation::skip_producer_reset, "skip_producer_reset"},
    {Mutation::skip_abort_markers, "skip_abort_markers"},
    {Mutation::retry_without_bound, "retry_without_bound"},
    {Mutation::give_up_unreachable, "give_up_unreachable"},
    {Mutation::ignore_reset_source, "ignore_reset_source"},
    {Mutation::ignore_trim, "ignore_trim"},
    {Mutation::follow_unclean_always, "follow_unclean_always"},
};

bool run_world(std::uint64_t seed, bool verbose) {
  try {
    sim::World world(seed, verbose);
    world.run();
    return true;
  } catch (const sim::Violation& violation) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.what.c_str());
    return false;
  }
}

// In a child, since a mistake may also break a CHECK of the machine and abort.
bool caught(const Named& mutation, std::uint64_t worlds) {
  auto* seed = static_cast<std::uint64_t*>(mmap(
      nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    mirror::active_mutation = mutation.mutation;
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    std::printf("%-26s ", mutation.name);
    std::fflush(stdout);
    for (*seed = 1; *seed <= worlds; ++*seed)
      if (!run_world(*seed, false)) {
        std::fflush(stdout);
        _exit(1);
      }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  const bool found = aborted || (WIFEXITED(status) && WEXITSTATUS(status) == 1);
  if (aborted)
    std::printf("seed %llu: a CHECK of the machine\n", static_cast<unsigned long long>(*seed));
  if (!found)
    std::printf("NOT CAUGHT within %llu worlds\n", static_cast<unsigned long long>(worlds));
  munmap(seed, sizeof(std::uint64_t));
  return found;
}

int prove_mutations(std::uint64_t worlds) {
  int missed = 0;
  for (const Named& mutation : mutations) missed += caught(mutation, worlds) ? 0 : 1;
  std::printf("%zu mutations, %d not caught\n", std::size(mutations), missed);
  return missed == 0 ? 0 : 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: mirror_sim --worlds N [--seed S] [--mutation NAME] [--verbose]\n"
               "       mirror_sim --mutations N\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t worlds = 1, seed = 1;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--verbose") {
      verbose = true;
      continue;
    }
    if (i + 1 == argc) return usage();
    const char* value = argv[++i];
    if (option == "--worlds") {
      worlds = std::strtoull(value, nullptr, 10);
    } else if (option == "--seed") {
      seed = std::strtoull(value, nullptr, 10);
    } else if (option == "--mutations") {
      return prove_mutations(std::strtoull(value, nullptr, 10));
    } else if (option == "--mutation") {
      for (const Named& m : mutations)
        if (std::strcmp(m.name, value) == 0) mirror::active_mutation = m.mutation;
      if (mirror::active_mutation == Mutation::none) return usage();
    } else {
      return usage();
    }
  }
  for (std::uint64_t s = seed; s < seed + worlds; ++s)
    if (!run_world(s, verbose)) return 1;
  std::printf("%llu worlds, all invariants held\n", static_cast<unsigned long long>(worlds));
}
