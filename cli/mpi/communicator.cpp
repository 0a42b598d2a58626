#include "cli/mpi/communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/request/errors.hpp"

namespace attn::cli {
namespace {

/// MPI counts bytes by int; larger messages are sent in pieces of this size.
constexpr std::size_t message_piece = std::size_t{1} << 30;

}  // namespace

struct Communicator::Handle {
    Handle(MPI_Comm of, std::shared_ptr<const Handle> of_world)
        : comm(of), world(std::move(of_world)) {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() {
        if (world == nullptr) {
            MPI_Finalize();
        } else {
            MPI_Comm own = comm;
            MPI_Comm_free(&own);
        }
    }

    MPI_Comm comm;
    std::shared_ptr<const Handle> world;  ///< null if it is the world itself
    int rank = 0, size = 1;
};

Communicator Communicator::world() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    return Communicator(std::make_shared<const Handle>(MPI_COMM_WORLD, nullptr));
}

std::size_t Communicator::rank() const {
    return static_cast<std::size_t>(handle_->rank);
}

std::size_t Communicator::size() const {
    return static_cast<std::size_t>(handle_->size);
}

Communicator Communicator::split(std::size_t color) const {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(handle_->comm, static_cast<int>(color), handle_->rank, &part);
    return Communicator(std::make_shared<const Handle>(part, handle_));
}

std::size_t Communicator::on_this_machine() const {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(handle_->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int ranks = 0;
    MPI_Comm_size(machine, &ranks);
    MPI_Comm_free(&machine);
    return static_cast<std::size_t>(ranks);
}

std::string Communicator::from_first(std::string text) const {
    int length = static_cast<int>(text.size());
    MPI_Bcast(&length, 1, MPI_INT, 0, handle_->comm);
    text.resize(static_cast<std::size_t>(length));
    MPI_Bcast(text.data(), length, MPI_CHAR, 0, handle_->comm);
    return text;
}

void Communicator::together(FunctionRef<void()> act) const {
    std::exception_ptr error;
    // The lowest rank that failed, and its exit code; none: the number of ranks.
    std::array<int, 2> first{handle_->size, 0};
    try {
        act();
    } catch (...) {
        error = std::current_exception();
        first = {handle_->rank, current_error().exit_code};
    }
    MPI_Allreduce(MPI_IN_PLACE, first.data(), 1, MPI_2INT, MPI_MINLOC, handle_->comm);
    if (first[0] == handle_->size) return;
    if (first[0] == handle_->rank) std::rethrow_exception(error);
    throw FailedElsewhere{first[1]};
}

struct Communicator::Passing::State {
    struct Message {
        std::span<std::byte> in;         ///< not empty: to receive
        std::span<const std::byte> out;  ///< otherwise to send
    };

    int next, previous;
    MPI_Comm comm;
    std::vector<Message> messages;
    std::vector<MPI_Request> requests;  ///< of each message
};

Communicator::Passing::Passing(const Communicator& ring) {
    const int rank = ring.handle_->rank, size = ring.handle_->size;
    state_ = std::make_unique<State>(
        State{(rank + 1) % size, (rank + size - 1) % size, ring.handle_->comm, {}, {}});
}

Communicator::Passing::~Passing() {
    wait();
}

void Communicator::Passing::add(std::span<const std::byte> out, std::span<std::byte> in) {
    for (std::size_t at = 0; at < in.size(); at += message_piece)
        state_->messages.push_back({in.subspan(at, std::min(message_piece, in.size() - at)), {}});
    for (std::size_t at = 0; at < out.size(); at += message_piece)
        state_->messages.push_back({{}, out.subspan(at, std::min(message_piece, out.size() - at))});
    state_->requests.resize(state_->messages.size(), MPI_REQUEST_NULL);
}

void Communicator::Passing::start() {
    constexpr int tag = 0;  // messages between two ranks arrive in the order of their sending
    for (std::size_t i = 0; i < state_->messages.size(); ++i) {
        const auto& [in, out] = state_->messages[i];
        if (in.empty())
            MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, state_->next, tag,
                      state_->comm, &state_->requests[i]);
        else
            MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, state_->previous, tag,
                      state_->comm, &state_->requests[i]);
    }
    state_->messages.clear();
}

void Communicator::Passing::progress() {
    int are_done = 0;
    MPI_Testall(static_cast<int>(state_->requests.size()), state_->requests.data(), &are_done,
                MPI_STATUSES_IGNORE);
}

void Communicator::Passing::wait() {
    MPI_Waitall(static_cast<int>(state_->requests.size()), state_->requests.data(),
                MPI_STATUSES_IGNORE);
    state_->requests.clear();
}

std::string mpi_library() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace attn::cli
