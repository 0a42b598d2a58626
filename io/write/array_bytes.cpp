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
    std::uint64_t bytes = element;
    for (std::size_t extent : shape) bytes *= extent;
    return bytes;
}

namespace {

struct ElementRow {
    std::string_view dtype, descr, safetensors;
    std::size_t size;
};

constexpr std::array<ElementRow, 5> element_rows{{{"float32", "<f4", "F32", sizeof(float)},
                                                  {"float64", "<f8", "F64", sizeof(double)},
                                                  {"int64", "<i8", "I64", sizeof(std::int64_t)},
                                                  {"float16", "<f2", "F16", sizeof(std::uint16_t)},
                                                  {"bfloat16", "", "BF16", sizeof(std::uint16_t)}}};

ArrayBytes array_bytes_of(const ElementRow& row, std::vector<std::size_t> shape = {}) {
    return {row.dtype, row.descr, row.safetensors, row.size, std::move(shape)};
}

template <class T>
ArrayBytes bytes_of_type() {
    if constexpr (std::is_same_v<T, float>) return array_bytes_of(element_rows[0]);
    if constexpr (std::is_same_v<T, double>) return array_bytes_of(element_rows[1]);
    if constexpr (std::is_same_v<T, std::int64_t>) return array_bytes_of(element_rows[2]);
}

ArrayBytes bytes_of_stored(const StoredType& type) {
    return array_bytes_of(element_rows[type.kind == StoredKind::float16 ? 3 : 4]);
}

}  // namespace

ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored) {
    ArrayBytes bytes =
        stored && is_real(array) ? bytes_of_stored(stored->type)
        : array.stream
            ? std::visit([]<class T>(const RowStream<T>&) { return bytes_of_type<T>(); },
                         *array.stream)
            : std::visit([]<class T>(const Array<T>&) { return bytes_of_type<T>(); }, array.values);
    bytes.shape = shape_of(array);
    return bytes;
}

std::optional<ArrayBytes> described_as(std::string_view dtype, std::vector<std::size_t> shape) {
    for (const ElementRow& row : element_rows)
        if (row.dtype == dtype) return array_bytes_of(row, std::move(shape));
    return std::nullopt;
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
