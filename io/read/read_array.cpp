#include "io/read/array_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/memory.hpp"
#include "io/read/json_document.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18;

template <class... Parts>
[[noreturn]] void fail_at(const StoredArray& array, const Parts&... message) {
    throw Error(ErrorKind::input, array.location(), message...);
}

bool holds_whole_numbers(const StoredArray& array) {
    return !array.type || !is_float(*array.type);
}

void require_readable_type(const StoredArray& array) {
    if (array.type) return;
    const std::string_view readable =
        array.readable_types.empty()
            ? "float8, float16, bfloat16, float32, float64, integers or booleans"
            : array.readable_types;
    fail_at(array, "elements of type ", one_line(shortened(array.type_name)),
            array.type_name == "|O" ? ", pickled Python objects" : "", "; expected ", readable);
}

/// Whether all elements are read before the first one is: they are apart, and cannot be addressed.
bool must_be_in_memory(const StoredArray& array) {
    return !array.strides.empty() && (array.zip != nullptr || array.bytes->mapped() == nullptr);
}

void check_memory(const StoredArray& array, const ArrayRules& rules, std::size_t element_size) {
    const double copies = must_be_in_memory(array) ? 3 : 1;
    require_memory(rules.memory_before + copies * static_cast<double>(element_size) *
                                             static_cast<double>(array.elements()),
                   array.location(),
                   rules.memory_before == 0 ? "this array" : "all up to this array");
}

/// Applies the rules for text, and reports the first invalid number in row-major order. Pieces may
/// come from several threads.
class NumberCheck {
public:
    NumberCheck(const StoredArray& array, const ArrayRules& rules)
        : array_(array), rules_(rules),
          narrows_(array.type && is_float(*array.type) &&
                   row_of(*array.type).largest > row_of(rules.dtype).largest),
          takes_all_(holds_whole_numbers(array) || (rules.nonfinite && !narrows_)) {}

    /// Elements from `first` on.
    template <class T>
    void look(std::size_t first, std::span<const T> piece) {
        const bool may_be_beyond = narrows_ && is_rounded(rules_.dtype);
        if (takes_all_ ||
            (!may_be_beyond && (narrows_ ? all_finite<float>(piece) : all_finite<T>(piece))))
            return;
        for (std::size_t i = 0; i < piece.size(); ++i) {
            if (is_taken(piece[i])) continue;
            const Fault fault{first + i, static_cast<double>(piece[i])};
            const std::lock_guard lock(finding_);
            if (!fault_ || fault.index < fault_->index) fault_ = fault;
        }
    }

    /// After everything is read: damaged bytes take precedence.
    void end() const {
        if (!fault_) return;
        const bool finite = std::isfinite(fault_->value);
        const std::string found = "element " + index_text(fault_->index, array_.shape) + " is ";
        fail_at(array_,
                finite ? found + number_text(fault_->value) + " and " + overflow_text(rules_.dtype)
                       : found + (std::isnan(fault_->value) ? "NaN" : "infinite") +
                             "; expected a finite number");
    }

private:
    struct Fault {
        std::size_t index;
        double value;
    };

    /// Checks the numbers as T. Without a branch, so that compilers vectorise it: numbers that are
    /// not finite leave a NaN.
    template <class T, class Number>
    static bool all_finite(std::span<const Number> piece) {
        constexpr std::size_t lanes = 16;
        std::array<T, lanes> sums{};
        std::size_t i = 0;
        for (; i + lanes <= piece.size(); i += lanes)
            for (std::size_t lane = 0; lane < lanes; ++lane)
                sums[lane] += static_cast<T>(piece[i + lane]) * T{0};
        for (; i < piece.size(); ++i) sums[0] += static_cast<T>(piece[i]) * T{0};
        return std::ranges::all_of(sums, [](T sum) { return sum == 0; });
    }

    template <class T>
    bool is_taken(T number) const {
        return std::isfinite(number) ? !narrows_ || !overflows(double{number}, rules_.dtype)
                                     : rules_.nonfinite;
    }

    const StoredArray& array_;
    const ArrayRules& rules_;
    bool narrows_, takes_all_;
    std::mutex finding_;
    std::optional<Fault> fault_;
};

/// The contents of an array's zip entry from this element on; null if it is not in a zip file.
std::unique_ptr<ZipStream> unzip_from(const StoredArray& array, std::size_t first) {
    if (array.zip == nullptr) return nullptr;
    auto stream = std::make_unique<ZipStream>(array.bytes, *array.zip, array.location());
    for (std::uint64_t skip = array.offset + first * row_of(*array.type).size; skip != 0;) {
        char unused[4096];
        const std::size_t step =
            static_cast<std::size_t>(std::min<std::uint64_t>(skip, sizeof unused));
        stream->read(step, unused);
        skip -= step;
    }
    return stream;
}

StoredArray in_memory(const StoredArray& array) {
    std::string bytes(static_cast<std::size_t>(array.size), '\0');
    if (const auto stream = unzip_from(array, 0))
        stream->read(bytes.size(), bytes.data());
    else
        array.bytes->read(array.offset, bytes.size(), bytes.data());
    StoredArray made = array;
    made.zip = nullptr;
    made.offset = 0;
    made.bytes = Bytes::of(array.bytes->name(), bytes);
    return made;
}

/// Elements [first, first + count) of an array with strides, in row-major order, as they are
/// stored.
void gather(const StoredArray& array, std::size_t first, std::size_t count, char* to) {
    const std::size_t size = row_of(*array.type).size, rank = array.shape.size();
    const char* const file = array.bytes->mapped();
    std::vector<std::size_t> index(rank);
    std::uint64_t at = 0;
    for (std::size_t axis = rank; axis-- > 0; first /= array.shape[axis]) {
        index[axis] = first % array.shape[axis];
        at += index[axis] * array.strides[axis];
    }
    for (; count != 0; --count, to += size) {
        std::memcpy(to, file + array.offset + at * size, size);
        for (std::size_t axis = rank; axis-- > 0;) {
            at += array.strides[axis];
            if (++index[axis] < array.shape[axis]) break;
            at -= array.strides[axis] * std::exchange(index[axis], 0);
        }
    }
}

/// Reads elements one run after the other, those of T directly into the result.
template <class T>
class ElementReader {
public:
    ElementReader(const StoredArray& array, std::size_t first, bool rounding_errors = false)
        : array_(array), at_(first), rounding_errors_(rounding_errors),
          stream_(unzip_from(array, first)) {}

    void read(std::span<T> to) {
        if (array_.dequantiser != nullptr) return dequantise(to);
        const std::size_t element = row_of(*array_.type).size, bytes = to.size() * element;
        const bool as_is = !rounding_errors_ && is_stored_as<T>(*array_.type, array_.big_endian);
        if (!as_is && packed_.size() < bytes) packed_.resize(bytes);
        char* const from = as_is ? reinterpret_cast<char*>(to.data()) : packed_.data();
        if (stream_ != nullptr)
            stream_->read(bytes, from);
        else if (!array_.strides.empty())
            gather(array_, at_, to.size(), from);
        else
            array_.bytes->read(array_.offset + at_ * element, bytes, from);
        if (rounding_errors_)
            decode_rounding_errors(*array_.type, array_.big_endian, from, to.size(), to.data());
        else if (!as_is)
            decode(*array_.type, array_.big_endian, from, to.size(), to.data());
        at_ += to.size();
    }

private:
    void dequantise(std::span<T> to) {
        if (rounding_errors_) {
            std::ranges::fill(to, T{0});
        } else if constexpr (std::is_same_v<T, float>) {
            array_.dequantiser->read(at_, to.size(), to.data());
        } else {
            if (values_.size() < to.size()) values_.resize(to.size());
            array_.dequantiser->read(at_, to.size(), values_.data());
            std::copy_n(values_.data(), to.size(), to.data());
        }
        at_ += to.size();
    }

    const StoredArray& array_;
    std::size_t at_;  // the next element
    bool rounding_errors_;
    std::unique_ptr<ZipStream> stream_;
    // Vectors have memory in a dry run, too, which reads the numbers that steps depend on.
    std::vector<char> packed_;
    std::vector<float> values_;
};

/// All elements, piece by piece on the workers. They are read as Read, so that the
/// check applies to the stored values, and then rounded to T.
template <class Read, class T>
void read_into(const StoredArray& array, bool rounding_errors, Array<T>& values, NumberCheck& check,
               ThreadPool* workers) {
    constexpr bool in_place = std::is_same_v<Read, T>;
    const std::size_t at_once = piece_bytes / sizeof(Read);
    const auto read = [&](ElementReader<Read>& reader, std::size_t first) {
        const std::size_t count = std::min(at_once, values.size() - first);
        std::vector<Read> numbers(in_place ? 0 : count);
        Read* to = numbers.data();
        if constexpr (in_place) to = values.data() + first;
        reader.read({to, count});
        check.look(first, std::span<const Read>(to, count));
        if constexpr (!in_place)
            std::transform(to, to + count, values.data() + first,
                           [](Read number) { return static_cast<T>(number); });
    };
    if (array.zip == nullptr)
        return share(workers, (values.size() + at_once - 1) / at_once, [&](std::size_t piece) {
            ElementReader<Read> reader(array, piece * at_once, rounding_errors);
            read(reader, piece * at_once);
        });
    ElementReader<Read> reader(array, 0, rounding_errors);
    for (std::size_t first = 0; first < values.size(); first += at_once) read(reader, first);
}

}  // namespace

void check_array(const StoredArray& array, const ArrayRules& rules) {
    require_readable_type(array);
    const std::size_t rank = array.shape.size();
    if (rank < rules.lowest_rank || rank > rules.highest_rank)
        fail_at(array, "shape ", shape_text(array.shape), " of rank ", rank, "; expected rank ",
                rank_range(rules));
    if (array.elements() == 0)
        fail_at(array, "shape ", shape_text(array.shape), "; expected at least one element");
    if (array.type == NumberType::boolean && !rules.boolean)
        fail_at(array, "booleans; expected numbers");
}

template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count,
                   FunctionRef<void(std::size_t, std::span<const T>)> take) {
    require_readable_type(array);
    if (must_be_in_memory(array)) return read_elements<T>(in_memory(array), first, count, take);
    const std::size_t at_once = piece_bytes / row_of(*array.type).size;
    ElementReader<T> reader(array, first);
    std::vector<T> numbers(std::min(count, at_once));
    for (std::size_t done = 0; done < count;) {
        const std::size_t now = std::min(at_once, count - done);
        reader.read({numbers.data(), now});
        take(done, std::span<const T>(numbers.data(), now));
        done += now;
    }
}

template <class T>
Array<T> read_array(const StoredArray& array, const ArrayRules& rules, ThreadPool* workers) {
    check_array(array, rules);
    check_memory(array, rules, sizeof(T));
    if (must_be_in_memory(array)) return read_array<T>(in_memory(array), rules, workers);
    Array<T> values = Array<T>::from_shape(array.shape);
    NumberCheck check(array, rules);
    const bool narrows = array.type == NumberType::float64 && sizeof(T) < sizeof(double);
    narrows ? read_into<double>(array, rules.rounding_errors, values, check, workers)
            : read_into<T>(array, rules.rounding_errors, values, check, workers);
    check.end();
    return values;
}

nlohmann::json ArrayFile::config() const {
    if (metadata == nullptr) return {};
    const auto found = metadata->find("config");
    return found != metadata->end() && found->is_object() ? *found : nlohmann::json();
}

std::shared_ptr<const nlohmann::json> parse_metadata(const std::string& location,
                                                     std::string_view text) {
    if (!text.starts_with('{')) return {};
    const Source source = source_of_line(location, text, 1);
    return std::make_shared<const nlohmann::json>(JsonDocument(source).read_values());
}

std::shared_ptr<const nlohmann::json> read_metadata(const StoredArray& array) {
    if (array.type != NumberType::uint8) return {};
    std::string text;
    const auto read = [&](std::size_t count) {
        text.clear();
        text.reserve(count);
        read_elements<float>(array, 0, count, [&](std::size_t, std::span<const float> piece) {
            for (float byte : piece) text += static_cast<char>(static_cast<unsigned char>(byte));
        });
        return std::string_view(text);
    };
    if (array.elements() == 0 || read(1) != "{") return {};
    if (array.elements() > max_metadata_length)
        fail_at(array, array.elements(), " bytes of settings and labels; expected at most ",
                max_metadata_length);
    return parse_metadata(array.location(), read(array.elements()));
}

NumberArray read_numbers(const StoredArray& array, const ArrayRules& rules, ThreadPool* workers) {
    const bool boolean = array.type == NumberType::boolean;
    return {read_array<double>(array, rules, workers), boolean,
            !boolean && holds_whole_numbers(array)};
}

RealArray read_reals(const StoredArray& array, const ArrayRules& rules, ThreadPool* workers) {
    return for_dtype(rules.dtype,
                     [&]<class T>(T) -> RealArray { return read_array<T>(array, rules, workers); });
}

template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count, T* to) {
    require_readable_type(array);
    if (must_be_in_memory(array)) return read_elements(in_memory(array), first, count, to);
    const bool is_direct =
        array.zip == nullptr && array.dequantiser == nullptr && array.strides.empty();
    const char* const file = is_direct ? array.bytes->mapped() : nullptr;
    if (file == nullptr) return ElementReader<T>(array, first).read({to, count});
    const char* const from = file + array.offset + first * row_of(*array.type).size;
    decode(*array.type, array.big_endian, from, count, to);
}

template <class T>
const T* elements_in_file(const StoredArray& array) {
    const bool is_plain = array.type && is_stored_as<T>(*array.type, array.big_endian) &&
                          array.zip == nullptr && array.dequantiser == nullptr &&
                          array.strides.empty();
    const char* const file = is_plain ? array.bytes->mapped() : nullptr;
    if (file == nullptr) return nullptr;
    const char* const first = file + array.offset;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0;
    return is_aligned ? reinterpret_cast<const T*>(first) : nullptr;
}

template void read_elements(const StoredArray&, std::size_t, std::size_t, float*);
template void read_elements(const StoredArray&, std::size_t, std::size_t, double*);
template const float* elements_in_file(const StoredArray&);
template const double* elements_in_file(const StoredArray&);
template void read_elements(const StoredArray&, std::size_t, std::size_t,
                            FunctionRef<void(std::size_t, std::span<const float>)>);
template void read_elements(const StoredArray&, std::size_t, std::size_t,
                            FunctionRef<void(std::size_t, std::span<const double>)>);
template Array<float> read_array(const StoredArray&, const ArrayRules&, ThreadPool*);
template Array<double> read_array(const StoredArray&, const ArrayRules&, ThreadPool*);

}  // namespace attn::io
