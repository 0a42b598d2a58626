#include "cli/mpi/communicator.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cli/mpi/divided.hpp"
#include "cli/request/errors.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

/// Variables that launchers set: Open MPI, MPICH and Intel MPI, PMIx as Slurm and others use it.
constexpr const char* launcher_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};

bool is_launched() {
    return std::any_of(std::begin(launcher_variables), std::end(launcher_variables),
                       [](const char* name) { return std::getenv(name) != nullptr; });
}

/// The shard of a batch that this rank answers, unless the command line gives one. Errors: kind
/// usage for what only one process can read or write.
Args with_shard(Args args, std::size_t rank, std::size_t ranks) {
    const std::string number = std::to_string(ranks) + " ranks";
    if (!args.has("shard")) {
        if (!args.has("out_dir"))
            throw Error(ErrorKind::usage, "attn batch",
                        number +
                            " cannot write one text; expected --out-dir DIR, or --shard with "
                            "another --output for each rank");
        args.flags.push_back({find_option(args.command->own, "shard"),
                              std::to_string(rank + 1) + "/" + std::to_string(ranks)});
    }
    if (args.words.empty() ||
        std::count(args.words.begin(), args.words.end(), std::string("-")) != 0)
        throw Error(ErrorKind::usage, "attn batch",
                    "standard input, which only one of " + number + " has; expected files");
    return args;
}

/// Whether the first rank alone answers: a page, or a message of the command line's parser.
bool is_for_first(const Args& args) {
    return !args.message.empty() || args.command->name == "help";
}

/// Errors: kind usage for a command that several ranks cannot run.
void check_command(const Args& args, std::size_t ranks) {
    if (is_for_first(args) || ranks == 1 || args.command->mode != nullptr ||
        args.command->name == "batch")
        return;
    throw Error(ErrorKind::usage, "attn " + std::string(args.command->name),
                "is not divided among " + std::to_string(ranks) +
                    " ranks; expected a mode, attn batch, or one process");
}

int run_together(const Communicator& world, FunctionRef<Args()> parse,
                 FunctionRef<int(const Args&)> run) {
    Args args;
    world.together([&] {
        args = parse();
        check_command(args, world.size());
    });
    if (is_for_first(args) && world.rank() != 0) return args.exit_code;
    if (is_for_first(args) || world.size() == 1) return run(args);
    int code = 0;
    if (args.command->mode != nullptr)
        run_divided(args, world);
    else
        world.together([&] { code = run(with_shard(args, world.rank(), world.size())); });
    return code;
}

}  // namespace

std::optional<int> run_on_ranks(FunctionRef<Args()> parse, FunctionRef<int(const Args&)> run) {
    if (!is_launched()) return {};
    const Communicator world = Communicator::world();
    try {
        return run_together(world, parse, run);
    } catch (const FailedElsewhere& failure) {
        return failure.exit_code;
    } catch (...) {
        // While MPI still runs: when the first rank exits with this code, mpirun ends the others.
        return show_error(current_error());
    }
}

}  // namespace attn::cli
