#include "io/write/array_bytes.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/threads.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {

std::uint64_t ArrayBytes::size() const {
    std::uint64_t bytes = size_of(element);
    for (std::size_t extent : shape) bytes *= extent;
    return bytes;
}

namespace {

template <class T>
constexpr ElementType element_type = std::is_same_v<T, float>    ? ElementType::float32
                                     : std::is_same_v<T, double> ? ElementType::float64
                                                                 : ElementType::int64;

ElementType type_of(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    if (stored && is_real(array))
        return stored->type.kind == StoredKind::float16 ? ElementType::float16
                                                        : ElementType::bfloat16;
    if (array.stream)
        return std::visit([]<class T>(const RowStream<T>&) { return element_type<T>; },
                          *array.stream);
    return std::visit([]<class T>(const Array<T>&) { return element_type<T>; }, array.values);
}

}  // namespace

ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    return {type_of(array, stored), shape_of(array)};
}

namespace {

template <class T>
std::string_view bytes_of(const Array<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Work for another thread, or for the caller if there is none.
class BackgroundWork {
public:
    explicit BackgroundWork(FunctionRef<void()> work)
        : work_(work), thread_(start_threads(1, [this](std::size_t) { run(); })) {}
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;
    ~BackgroundWork() { join(); }

    /// Errors: those of the work.
    void wait() {
        if (thread_.empty()) run();
        join();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void run() {
        try {
            work_();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    void join() {
        for (std::thread& thread : thread_) thread.join();
        thread_.clear();
    }

    FunctionRef<void()> work_;
    std::exception_ptr failure_;
    std::vector<std::thread> thread_;  // last: it uses all of the above
};

template <class T>
void write_in_background(const RowStream<T>& stream, FunctionRef<void(std::string_view)> take) {
    for (Array<T> made = stream.next(); made.size() != 0;) {
        const auto write = [&] { take(bytes_of(made)); };
        BackgroundWork writing(write);
        Array<T> next = stream.next();
        writing.wait();
        made = std::move(next);
    }
}

/// Words of 16 bits, a part at a time.
template <class T>
void write_stored(const Array<T>& values, const StoredType& type,
                  FunctionRef<void(std::string_view)> take) {
    std::array<std::uint16_t, 4096> words;
    for (std::size_t begin = 0; begin < values.size(); begin += words.size()) {
        const std::size_t count = std::min(words.size(), values.size() - begin);
        for (std::size_t i = 0; i < count; ++i)
            words[i] = static_cast<std::uint16_t>(
                io::stored(static_cast<double>(values.data()[begin + i]), type).word);
        take({reinterpret_cast<const char*>(words.data()), count * sizeof words[0]});
    }
}

}  // namespace

void write_bytes(const NamedArray& array, const std::optional<StoredArrays>& stored,
                 const ThreadPool* workers, FunctionRef<void(std::string_view)> take) {
    if (stored && is_real(array))
        return for_each_piece(
            array, [&](const auto& values) { write_stored(values, stored->type, take); });
    if (array.stream && workers != nullptr && workers->threads() > 1)
        return std::visit([&](const auto& stream) { write_in_background(stream, take); },
                          *array.stream);
    for_each_piece(array, [&](const auto& values) { take(bytes_of(values)); });
}

}  // namespace attn::io
