#include "cli/batch/index_line.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

std::string array_text(const IndexLine& line, std::size_t i) {
    const PackedArray& array = line.arrays[i];
    std::string text = "{";
    io::append_member(text, "name", array.name);
    io::append_member(text, "entry", entry_name(line.record, array.name));
    io::append_member(text, "dtype", array.type.dtype);
    io::append_member(text, "shape", array.type.shape);
    io::append_member(text, "offset", line.offsets[i]);
    io::append_member(text, "bytes", array.type.size());
    if (array.saturated != 0) io::append_member(text, "saturated", array.saturated);
    return text + "}";
}

}  // namespace

std::string entry_name(std::uint64_t record, const std::string& array) {
    return "r" + std::to_string(record) + "." + array;
}

std::string text_of(const IndexLine& line) {
    std::string text = line.head;
    io::append_member(text, record_key, line.record);
    io::append_member(text, "file", line.file);
    text += ",\"arrays\":[";
    for (std::size_t i = 0; i < line.arrays.size(); ++i)
        (text += i == 0 ? "" : ",") += array_text(line, i);
    return text + "]}\n";
}

std::optional<IndexLine> read_index_line(const io::JsonDocument& document,
                                         const io::Source& source) {
    const io::JsonMember* const record = document.find(std::string(record_key));
    const io::JsonMember* const file = document.find("file");
    const io::JsonMember* const arrays = document.find("arrays");
    if (record == nullptr || file == nullptr || arrays == nullptr || record->key_offset == 0)
        return {};
    IndexLine line;
    line.head = source.text.substr(0, record->key_offset - 1);  // without the comma
    try {
        line.record = document.read_value(*record).get<std::uint64_t>();
        line.file = document.read_value(*file).get<std::string>();
        for (const nlohmann::json& array : document.read_value(*arrays)) {
            std::optional<io::ArrayBytes> type =
                io::described_as(array.at("dtype").get<std::string>(),
                                 array.at("shape").get<std::vector<std::size_t>>());
            if (!type) return {};
            line.arrays.push_back({array.at("name").get<std::string>(), std::move(*type),
                                   array.value("saturated", std::uint64_t{0})});
            line.offsets.push_back(array.at("offset").get<std::uint64_t>());
        }
    } catch (const nlohmann::json::exception&) {
        return {};
    }
    // Whatever another program has changed is not ours to go on with.
    const std::string_view text = source.text;
    return text_of(line) == std::string(text) + "\n" ? std::optional(std::move(line))
                                                     : std::nullopt;
}

RecordOutcome load_answer(const std::string& folder, const IndexLine& line) {
    RecordOutcome outcome{io::TextBuffer(line.head), {}};
    PackedArrays& packed = outcome.packed.emplace(PackedArrays{line.arrays, {}});
    if (line.arrays.empty()) return outcome;
    const auto bytes = io::Bytes::open(io::path_in(folder, line.file),
                                       {.regular_only = true, .is_own_output = true});
    for (std::size_t i = 0; i < line.arrays.size(); ++i) {
        const std::uint64_t size = line.arrays[i].type.size();
        if (line.offsets[i] > bytes->size() || size > bytes->size() - line.offsets[i])
            throw Error(ErrorKind::input, bytes->name(),
                        "ends before " + entry_name(line.record, line.arrays[i].name) +
                            "; expected the file that the batch wrote");
        char* const to = packed.bytes.space(static_cast<std::size_t>(size));
        bytes->read(line.offsets[i], static_cast<std::size_t>(size), to);
        packed.bytes.end_at(to + size);
    }
    return outcome;
}

}  // namespace attn::cli
