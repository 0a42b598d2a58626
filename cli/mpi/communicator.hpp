// The processes of an MPI job, in terms of what attn sends.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/args/args.hpp"
#include "core/base/function_ref.hpp"

namespace attn::cli {

/// This rank's work stopped because another rank, which reports the error, failed.
struct FailedElsewhere {
    int exit_code;
};

/// Some of the job's processes, or all. Errors of MPI itself end the job, by MPI's default.
class Communicator {
public:
    /// All processes of the job. Initialises MPI, and ends it when the last communicator is gone;
    /// once in a program. Only the thread that calls it may use MPI.
    static Communicator world();

    std::size_t rank() const;
    std::size_t size() const;

    /// The ranks that call it with the same `color`, in the same order.
    Communicator split(std::size_t color) const;

    /// How many of the ranks share this one's machine, itself included. All ranks must call it.
    std::size_t on_this_machine() const;

    /// The text of rank 0.
    std::string from_first(std::string text) const;

    /// Runs `act` on every rank, and waits for all of them. If it throws on some, the lowest of
    /// these throws its error, and the others throw FailedElsewhere with the error's exit code.
    /// `act` must not wait for other ranks, which may have failed.
    void together(FunctionRef<void()> act) const;

    /// Sends to the next rank and receives from the previous one.
    class Passing {
    public:
        explicit Passing(const Communicator& ring);
        Passing(const Passing&) = delete;
        Passing& operator=(const Passing&) = delete;
        ~Passing();

        /// Adds bytes to send, which must not change, and space to fill, until wait(). The next
        /// rank's space must have the size of these bytes.
        void add(std::span<const std::byte> out, std::span<std::byte> in);

        /// Starts to send and receive what was added. Allocates nothing, so that either all ranks
        /// start or, if add() failed on one, none.
        void start();

        /// Lets MPI work: it may send and receive only while one of its functions runs.
        void progress();
        void wait();

    private:
        struct State;
        std::unique_ptr<State> state_;
    };

private:
    struct Handle;
    explicit Communicator(std::shared_ptr<const Handle> handle) : handle_(std::move(handle)) {}

    std::shared_ptr<const Handle> handle_;
};

// A command line on the processes ("ranks") that mpirun, or another launcher of MPI, has started.
// In a build without MPI, without_mpi.cpp is compiled instead of this module's other files.

/// Parses and runs the command line together with the other ranks, and returns the exit code. A
/// mode is divided, and a batch has its shard; `run` runs whatever is not divided. Of ranks that
/// fail, one reports its error. Empty if no launcher of MPI has started this process.
std::optional<int> run_on_ranks(FunctionRef<Args()> parse, FunctionRef<int(const Args&)> run);

/// The library of MPI and its version, or what --version shows in a build without it.
std::string mpi_library();

}  // namespace attn::cli
