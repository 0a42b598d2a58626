// Files of arrays in binary form; see array_file.hpp.
#include "io/read/array_file.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18;

[[noreturn]] void fail_at(const StoredArray& array, const std::string& message) {
    throw Error(ErrorKind::input, array.place(), message);
}

/// "[1, 0]": the place of an element, counted in row-major order.
std::string index_text(std::size_t element, const std::vector<std::size_t>& shape) {
    std::string text = "]";
    for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
        text = (axis == 0 ? "[" : ", ") + std::to_string(element % shape[axis]) + text;
    return text;
}

bool holds_whole_numbers(const StoredArray& array) {
    return array.type != ElementType::float16 && array.type != ElementType::bfloat16 &&
           array.type != ElementType::float32 && array.type != ElementType::float64;
}

void check_type(const StoredArray& array) {
    if (!array.type)
        fail_at(array, "elements of type " + one_line(shortened(array.type_name)) +
                           (array.type_name == "|O" ? ", pickled Python objects" : "") +
                           "; expected float16, bfloat16, float32, float64, integers or booleans");
}

void check_shape(const StoredArray& array, const ArrayRules& rules, std::size_t element_size) {
    const std::size_t rank = array.shape.size();
    if (rank < rules.lowest_rank || rank > rules.highest_rank)
        fail_at(array, "shape " + shape_text(array.shape) + " of rank " + std::to_string(rank) +
                           "; expected rank " + rank_range(rules));
    if (array.elements() == 0)
        fail_at(array, "shape " + shape_text(array.shape) + "; expected at least one element");
    if (array.type == ElementType::boolean && !rules.boolean)
        fail_at(array, "booleans; expected numbers");
    const double copies = array.fortran_order && rank > 1 ? 2 : 1;
    require_memory(rules.memory_before + copies * static_cast<double>(element_size) *
                                             static_cast<double>(array.elements()),
                   array.place(), rules.memory_before == 0 ? "this array" : "all up to this array");
}

/// Refuses what the rules refuse in text, with its place.
template <class T>
void check_numbers(const StoredArray& array, const Array<T>& values, const ArrayRules& rules) {
    if (holds_whole_numbers(array)) return;
    const bool narrows = rules.dtype == Dtype::float32 && array.type == ElementType::float64;
    const T* data = values.data();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool finite = std::isfinite(data[i]);
        if (finite ? !narrows || std::isfinite(static_cast<float>(data[i])) : rules.nonfinite)
            continue;
        const std::string where = "element " + index_text(i, array.shape) + " is ";
        std::string text;
        if (finite) append_number(text, data[i], std::nullopt);
        fail_at(array, finite ? where + text + " and " + overflow_text(rules.dtype)
                              : where + (std::isnan(data[i]) ? "NaN" : "infinite") +
                                    "; expected a finite number");
    }
}

}  // namespace

std::size_t StoredArray::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::string StoredArray::place() const {
    return bytes->name() + (name.empty() ? "" : ":" + name);
}

void ArrayFile::index_names() {
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < arrays.size(); ++i) index.emplace(arrays[i].name, i);
    places = std::make_shared<const std::unordered_map<std::string, std::size_t>>(std::move(index));
}

const StoredArray* ArrayFile::find(const std::string& array) const {
    if (places != nullptr) {
        const auto place = places->find(array);
        return place == places->end() ? nullptr : &arrays[place->second];
    }
    const auto found = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const StoredArray& a) { return a.name == array; });
    return found == arrays.end() ? nullptr : &*found;
}

template <class T>
void read_elements(const StoredArray& array, std::size_t first, std::size_t count,
                   FunctionRef<void(std::size_t, std::span<const T>)> take) {
    check_type(array);
    const std::size_t element = size_of(*array.type), at_once = piece_bytes / element;
    std::vector<char> packed(std::min(count, at_once) * element);
    std::vector<T> numbers(std::min(count, at_once));
    std::unique_ptr<ZipStream> stream;
    if (array.zip != nullptr) {
        stream = std::make_unique<ZipStream>(array.bytes, *array.zip, array.place());
        for (std::uint64_t skip = array.offset + first * element; skip != 0;) {
            char unused[4096];
            const std::size_t step =
                static_cast<std::size_t>(std::min<std::uint64_t>(skip, sizeof unused));
            stream->read(step, unused);
            skip -= step;
        }
    }
    for (std::size_t done = 0; done < count;) {
        const std::size_t now = std::min(at_once, count - done);
        if (stream != nullptr)
            stream->read(now * element, packed.data());
        else
            array.bytes->read(array.offset + (first + done) * element, now * element,
                              packed.data());
        decode(*array.type, array.big_endian, packed.data(), now, numbers.data());
        take(done, std::span<const T>(numbers.data(), now));
        done += now;
    }
}

namespace {

/// What holds its numbers in column-major order, the first index turning fastest, put in order.
template <class T>
Array<T> in_row_major(const Array<T>& columns) {
    const std::vector<std::size_t>& shape = columns.shape();
    Array<T> rows = Array<T>::from_shape(shape);
    const std::size_t last = shape.size() - 1,
                      step = rows.size() / std::max<std::size_t>(1, shape[last]);
    std::vector<std::size_t> index(last);
    T* to = rows.data();
    while (to != rows.end()) {
        std::size_t from = 0;
        for (std::size_t axis = last; axis-- > 0;) from = from * shape[axis] + index[axis];
        for (std::size_t i = 0; i < shape[last]; ++i) *to++ = columns.data()[from + i * step];
        for (std::size_t axis = last; axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
    }
    return rows;
}

}  // namespace

template <class T>
Array<T> read_array(const StoredArray& array, const ArrayRules& rules) {
    check_type(array);
    check_shape(array, rules, sizeof(T));
    Array<T> values = Array<T>::from_shape(array.shape);
    T* const to = values.data();
    read_elements<T>(array, 0, values.size(), [&](std::size_t before, std::span<const T> piece) {
        std::copy(piece.begin(), piece.end(), to + before);
    });
    if (array.fortran_order && array.shape.size() > 1) values = in_row_major(values);
    check_numbers(array, values, rules);
    return values;
}

nlohmann::json ArrayFile::config() const {
    if (metadata == nullptr) return {};
    const auto found = metadata->find("config");
    return found != metadata->end() && found->is_object() ? *found : nlohmann::json();
}

std::shared_ptr<const nlohmann::json> parse_metadata(const std::string& place,
                                                     std::string_view text) {
    if (!text.starts_with('{')) return {};
    const Source source = source_of_line(place, text, 1);
    return std::make_shared<const nlohmann::json>(JsonDocument(source).read_values());
}

std::shared_ptr<const nlohmann::json> read_metadata(const StoredArray& array) {
    if (array.type != ElementType::uint8) return {};
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
    if (array.elements() > longest_metadata)
        fail_at(array, std::to_string(array.elements()) +
                           " bytes of settings and labels; expected at most " +
                           std::to_string(longest_metadata));
    return parse_metadata(array.place(), read(array.elements()));
}

NumberArray read_numbers(const StoredArray& array, const ArrayRules& rules) {
    const bool boolean = array.type == ElementType::boolean;
    return {read_array<double>(array, rules), boolean, !boolean && holds_whole_numbers(array)};
}

std::string list_of(const std::vector<StoredArray>& arrays) {
    if (arrays.empty()) return "no array";
    constexpr std::size_t most = 24;
    std::string text;
    for (std::size_t i = 0; i < std::min(arrays.size(), most); ++i)
        text += (text.empty() ? "" : ", ") + one_line(shortened(arrays[i].name)) + " " +
                shape_text(arrays[i].shape);
    if (arrays.size() > most) text += " and " + std::to_string(arrays.size() - most) + " more";
    return text;
}

template void read_elements(const StoredArray&, std::size_t, std::size_t,
                            FunctionRef<void(std::size_t, std::span<const float>)>);
template void read_elements(const StoredArray&, std::size_t, std::size_t,
                            FunctionRef<void(std::size_t, std::span<const double>)>);
template Array<float> read_array(const StoredArray&, const ArrayRules&);
template Array<double> read_array(const StoredArray&, const ArrayRules&);

}  // namespace attn::io
