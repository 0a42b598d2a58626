#include "io/read/hardware.hpp"

#include <algorithm>

#include "io/text/number_text.hpp"

namespace attn::io {

bool HardwareReader::is_at_end() {
    for (;;) {
        at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size());
        const std::string_view rest = text_.substr(at_);
        const bool is_line = rest.starts_with("//");
        if (!is_line && !rest.starts_with("/*")) return rest.empty();
        const std::string_view mark = is_line ? "\n" : "*/";
        const std::size_t end = rest.find(mark, 2);
        if (end == rest.npos && !is_line) fail("; expected the end of this comment");
        if (is_own_ && at_ != 0) describe(rest.substr(2, end - 2));
        at_ = end == rest.npos ? text_.size() : at_ + end + mark.size();
    }
}

/// " NAME (AXES): MEANING; other details", of $readmemh " NAME[2][3] (AXES): ...".
void HardwareReader::describe(std::string_view comment) {
    if (described_) fail("; expected the array of ", quoted_name(described_->array.name), " first");
    const std::size_t axes = comment.find(" (", 1), colon = comment.find("): ");
    if (!comment.starts_with(' ') || axes == comment.npos || colon == comment.npos || colon < axes)
        fail("; expected a comment \"NAME (AXES): TYPE\", as attn writes it");
    Described own;
    StoredArray& array = own.array;
    std::string_view name = comment.substr(1, axes - 1), sizes = name;
    name = name.substr(0, name.find('['));
    for (sizes.remove_prefix(name.size()); !sizes.empty();) {
        const std::size_t end = std::min(sizes.find(']'), sizes.size());
        const auto size = number_of_text<std::size_t>(sizes.substr(1, end - 1));
        constexpr std::size_t max_rank = 32;
        if (!size || *size == 0 || sizes[0] != '[' || end == sizes.size() ||
            array.shape.size() == max_rank)
            fail("; expected an array with a size in each [], as attn writes it");
        array.shape.push_back(*size);
        sizes.remove_prefix(end + 1);
    }
    array.name = name;
    const std::string_view list = comment.substr(axes, colon - axes);
    if (name.starts_with("W_") && !name.starts_with("W_out"))
        in_out_ = !list.ends_with("d_in") && !list.ends_with("d_context");
    std::string_view meaning = comment.substr(colon + 3);
    meaning = meaning.substr(0, meaning.find_last_not_of(" \r") + 1);
    meaning = meaning.substr(0, meaning.find("; "));
    array.type_name = meaning.substr(0, meaning.find(','));
    const auto type = type_of_meaning(meaning);
    if (!type) fail("; expected a type after \"): \", as attn writes it");
    own.type = *type;
    described_ = std::move(own);
}

StoredArray HardwareReader::array_of(Described own, const std::string& words) {
    StoredArray array = std::move(own.array);
    if (!names_.insert(array.name).second)
        throw Error(ErrorKind::input, source_.location(at_), array.name,
                    " appears twice; expected it once");
    array.type = own.type.element();
    array.bytes = Bytes::of(source_.name, words);
    if (!own.type.is_plain()) array.words = own.type;
    if (array.words && own.type.is_integer())
        array = as_numbers(std::move(array), own.type, row_of(own.type.element()).size);
    // The size of the words, not that of the numbers that are read.
    array.size = (array.elements() * static_cast<unsigned>(own.type.width()) + 7) / 8;
    return array;
}

StoredArray as_numbers(StoredArray array, const StoredType& type, std::size_t size) {
    const std::size_t count = array.elements(),
                      unused = 64 - static_cast<std::size_t>(type.width());
    require_memory(static_cast<double>(count) * 2 * sizeof(double), array.location(), "this array");
    const std::string words = array.bytes->read(0, count * size);
    std::vector<double> numbers;
    for (std::size_t at = 0; at < words.size(); at += size) {
        std::string word = words.substr(at, size);
        if (array.big_endian) std::ranges::reverse(word);
        const auto top = static_cast<std::int64_t>(number_at(word, 0, size) << unused);
        numbers.push_back(static_cast<double>(top >> unused) * type.step());
    }
    hold_numbers(array, array.bytes->name(), numbers);
    array.words = type;
    return array;
}

}  // namespace attn::io
