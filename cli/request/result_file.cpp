// A result that is read back; see result_file.hpp.
#include "cli/request/result_file.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "io/read/input_file.hpp"
#include "io/read/row_labels.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// What a result says beside its arrays.
constexpr std::array<const char*, 5> head_keys{"mode", "config", "shapes", "tokens",
                                               "context_tokens"};

io::ArrayRules any_array() {
    io::ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.nonfinite = rules.boolean = rules.null_is_nan = true;
    rules.lowest_rank = 0;
    rules.highest_rank = 4;
    return rules;
}

bool has_config(const json& head) {
    return head.contains("config") && head["config"].is_object();
}

std::optional<Dtype> dtype_of(const json& head) {
    if (!has_config(head)) return std::nullopt;
    const bool is_wide = head["config"].value("dtype", json()) == "float64";
    return is_wide ? Dtype::float64 : Dtype::float32;
}

std::optional<Dtype> dtype_of(std::optional<io::ElementType> type) {
    if (type == io::ElementType::float32) return Dtype::float32;
    if (type == io::ElementType::float64) return Dtype::float64;
    return std::nullopt;
}

json head_in(const io::InputFile& file) {
    json head = json::object();
    for (const char* key : head_keys) {
        if (file.arrays && file.arrays->metadata != nullptr) {
            const json& said = *file.arrays->metadata;
            if (said.contains(key)) head[key] = said[key];
        } else if (file.holds_object()) {
            const io::JsonMember* member = file.document->find(key);
            if (member != nullptr) head[key] = file.document->read_value(*member);
        }
    }
    return head;
}

/// Unless it is one of a result and the whole result is wanted.
bool holds_one_array(const io::InputFile& file, bool whole, const ResultFile& result) {
    if (!file.array.empty()) return !whole || !has_config(*result.head);
    if (file.arrays) return file.arrays->arrays.size() == 1 && file.arrays->metadata == nullptr;
    return !file.holds_object();
}

void read_one(const io::InputFile& file, ResultFile& result, ThreadPool& workers) {
    result.is_one_array = true;
    std::vector<std::string> labels;
    result.arrays.push_back({file.array.empty() ? "array" : file.array,
                             io::read_one_array(file, any_array(), &workers, {}, &labels).values});
    const bool says_all = !result.head->empty();
    if (!labels.empty() && !says_all)
        result.head = std::make_shared<const json>(json{{"tokens", labels}});
    if (!file.arrays) return;
    const io::ArrayFile& all = *file.arrays;
    result.dtype = dtype_of(file.array.empty() ? all.arrays[0].type : all.find(file.array)->type);
}

void read_all(const io::InputFile& file, ResultFile& result, ThreadPool& workers) {
    result.dtype = dtype_of(*result.head);
    if (file.arrays) {
        double bytes = 0;
        for (const io::StoredArray& array : file.arrays->arrays)
            bytes += sizeof(double) * static_cast<double>(array.elements());
        require_memory(bytes, file.name, "reading all of its arrays (FILE:NAME reads one)");
        for (const io::StoredArray& array : file.arrays->arrays)
            result.arrays.push_back(
                {array.name, io::read_numbers(array, any_array(), &workers).values});
        return;
    }
    const io::JsonDocument& document = *file.document;
    for (const io::JsonMember& member : document.members())
        if (!io::is_label_key(member.key) && document.holds_array(member))
            result.arrays.push_back(
                {member.key, document.read_array(member, any_array(), &workers).values});
}

}  // namespace

ResultFile read_result_file(const std::string& path, ThreadPool& workers, bool whole) {
    const io::InputFile file = io::open_input_file(path);
    ResultFile result;
    result.place = file.name;
    result.named = file.array;
    result.is_text = !file.arrays;
    result.head = std::make_shared<const json>(head_in(file));
    if (holds_one_array(file, whole, result))
        read_one(file, result, workers);
    else
        read_all(file, result, workers);
    if (result.arrays.empty())
        throw Error(ErrorKind::input, file.name, "holds no array; expected a result or an array");
    return result;
}

}  // namespace attn::cli
