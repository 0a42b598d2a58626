#include "io/tokenizer/characters.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "io/file/source.hpp"

namespace attn::io {
struct FreePcre2 {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
template <class T>
using Owned = std::unique_ptr<T, FreePcre2>;

namespace {

constexpr std::size_t longest_expression = std::size_t{1} << 20;
constexpr std::uint32_t max_steps = 1'000'000;  // of one match, and some per byte of the text
constexpr std::uint32_t max_kibibytes = 1u << 19;

std::string message_of(int error) {
    std::string text(256, '\0');
    const int size =
        pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
    text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return text;
}

void add(Matches& matches, std::size_t& end, std::size_t begin, std::size_t next) {
    if (begin != end) matches.push_back({end, begin, false});
    matches.push_back({begin, next, true});
    end = next;
}

}  // namespace

struct Pattern::Compiled {
    Owned<pcre2_code> code;
};

Pattern Pattern::literal(std::string text) {
    if (text.empty()) return regex("", "");
    Pattern pattern;
    pattern.literal_ = std::move(text);
    return pattern;
}

Pattern Pattern::regex(std::string_view expression, const std::string& location) {
    if (expression.size() > longest_expression)
        throw Error(ErrorKind::input, location,
                    "is longer than 1 MiB; expected a shorter regular expression");
    const std::string text = pcre2_syntax(expression, location);
    const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
    if (context == nullptr) throw std::bad_alloc();
    pcre2_set_max_pattern_length(context.get(), std::size_t{1} << 23);
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto compiled = std::make_shared<Compiled>();
    compiled->code.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK,
        &error, &offset, context.get()));
    if (compiled->code == nullptr)
        throw Error(ErrorKind::input, location, "is not a regular expression that can be used (",
                    message_of(error), "): ", one_line(shortened(std::string(expression))));
    Pattern pattern;
    pattern.location_ = location;
    pattern.compiled_ = std::move(compiled);
    return pattern;
}

Pattern Pattern::read(const Setting& setting) {
    if (setting.value().is_string()) return literal(setting.string());
    if (setting.is_object() && setting.value().size() == 1) {
        if (setting.has("String")) return literal(setting.at("String").string());
        if (setting.has("Regex"))
            return regex(setting.at("Regex").string(), setting.at("Regex").location());
    }
    setting.fail("is not a pattern; expected {\"String\": ...} or {\"Regex\": ...}");
}

Matches Pattern::find(std::string_view text) const {
    Matches matches;
    std::size_t end = 0;
    if (text.empty()) return {{0, 0, false}};
    if (compiled_ == nullptr) {
        for (std::size_t at = 0; (at = text.find(literal_, at)) != text.npos; at = end)
            add(matches, end, at, at + literal_.size());
        if (end != text.size()) matches.push_back({end, text.size(), false});
        return matches;
    }
    const Owned<pcre2_match_data> found(pcre2_match_data_create(1, nullptr));
    const Owned<pcre2_match_context> context(pcre2_match_context_create(nullptr));
    if (found == nullptr || context == nullptr) throw std::bad_alloc();
    const auto steps = std::min<std::size_t>(max_steps + 16 * text.size(),
                                             std::numeric_limits<std::uint32_t>::max());
    pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(steps));
    pcre2_set_heap_limit(context.get(), max_kibibytes);
    const auto begin = std::chrono::steady_clock::now();
    const auto max_time = std::chrono::seconds(10) +
                          std::chrono::microseconds(static_cast<std::int64_t>(text.size()));
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(found.get());
    for (std::size_t from = 0; from <= text.size();) {
        const int count =
            pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                        text.size(), from, PCRE2_NO_UTF_CHECK, found.get(), context.get());
        if (count == PCRE2_ERROR_NOMATCH) break;
        if (count < 0 || std::chrono::steady_clock::now() - begin > max_time)
            throw Error(ErrorKind::input, location_, "takes too long on this text",
                        count < 0 ? " (" + message_of(count) + ")" : std::string(),
                        "; expected a regular expression that takes fewer steps");
        const bool is_empty = bounds[0] >= bounds[1];
        if (is_empty && !matches.empty() && bounds[0] <= end) {
            // An empty match does not follow a match directly.
            if (from == text.size()) break;
            from += std::max<std::size_t>(character_size(text.substr(from)), 1);
            continue;
        }
        add(matches, end, bounds[0], std::max(bounds[0], bounds[1]));
        from = end;
    }
    if (end != text.size()) matches.push_back({end, text.size(), false});
    return matches;
}

void replace_matches(TextPart& part, const Pattern& pattern, const std::string& content) {
    PartBuilder builder(part, part.text.size());
    const std::string_view text = part.text;
    for (const Match& match : pattern.find(text))
        if (match.is_match) {
            // What is inserted belongs to the character before it.
            const std::size_t before = std::max<std::size_t>(match.end, 1) - 1;
            builder.append(content, before < part.from_start || match.end == 0);
        } else {
            for (std::size_t at = match.begin; at < match.end; ++at)
                builder.append(text.substr(at, 1), at < part.from_start);
        }
    part = builder.take();
}

Behavior read_behavior(const Setting& setting) {
    static const std::map<std::string, Behavior> names{
        {"Removed", Behavior::removed},
        {"Isolated", Behavior::isolated},
        {"MergedWithPrevious", Behavior::merged_with_previous},
        {"MergedWithNext", Behavior::merged_with_next},
        {"Contiguous", Behavior::contiguous}};
    const auto found = names.find(setting.string());
    if (found == names.end())
        throw Error(ErrorKind::unsupported, setting.location(), "is \"",
                    one_line(shortened(setting.string())),
                    "\"; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                    "Contiguous");
    return found->second;
}

void append_split(std::vector<TextPart>& parts, const TextPart& part, const Matches& matches,
                  Behavior behavior) {
    const bool is_contiguous = behavior == Behavior::contiguous;
    const bool is_backward = behavior == Behavior::merged_with_next;
    const bool merges = is_backward || behavior == Behavior::merged_with_previous;
    Matches pieces;
    bool is_after_match = false;
    for (std::size_t i = 0; i < matches.size(); ++i) {
        const Match& match = matches[is_backward ? matches.size() - 1 - i : i];
        const bool joins = is_contiguous ? match.is_match == is_after_match
                                         : merges && match.is_match && !is_after_match;
        is_after_match = match.is_match;
        if (joins && !pieces.empty()) {
            pieces.back().begin = std::min(pieces.back().begin, match.begin);
            pieces.back().end = std::max(pieces.back().end, match.end);
        } else {
            pieces.push_back(match);
        }
    }
    if (is_backward) std::ranges::reverse(pieces);
    for (const Match& piece : pieces)
        if (piece.begin != piece.end && (behavior != Behavior::removed || !piece.is_match))
            parts.push_back(slice(part, piece.begin, piece.end));
}

void split_parts(std::vector<TextPart>& parts, Behavior behavior,
                 const std::function<Matches(std::string_view)>& find) {
    std::vector<TextPart> result;
    for (TextPart& part : parts)
        if (part.added)
            result.push_back(std::move(part));
        else
            append_split(result, part, find(part.text), behavior);
    parts = std::move(result);
}

void split_parts(std::vector<TextPart>& parts, Behavior behavior, const Pattern& pattern) {
    split_parts(parts, behavior, [&](std::string_view text) { return pattern.find(text); });
}

Matches find_characters(std::string_view text, bool (*is_match)(char32_t)) {
    return find_runs(text, [is_match, was_match = false](char32_t code) mutable {
        const bool is = is_match(code);
        return std::pair(std::exchange(was_match, is) || is, is);
    });
}

}  // namespace attn::io
