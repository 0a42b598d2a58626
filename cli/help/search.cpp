// Sections of the manual, found by the words of their headings, tables and texts.
#include <algorithm>
#include <cctype>

#include "cli/args/names.hpp"
#include "cli/help/help.hpp"

namespace attn::cli {
namespace {

/// The words in lower case between single blanks: "Key/value caches" is " key value cache ". A
/// plural is its singular.
std::string searched_words(std::string_view text) {
    constexpr std::size_t shortest_plural = 4;
    std::string words = " ", word;
    const auto end_word = [&] {
        if (word.size() >= shortest_plural && word.ends_with('s')) word.pop_back();
        if (!word.empty()) words += word + ' ';
        word.clear();
    };
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || byte >= 0x80)
            word += static_cast<char>(std::tolower(byte));
        else
            end_word();
    }
    end_word();
    return words;
}

/// A heading outweighs a section that mentions a word often.
constexpr std::size_t heading_points = 1000;

/// The points of a phrase in a section; 0: it is not there.
std::size_t points_of(const Section& section, const std::string& phrase) {
    const auto count = [&](std::string_view text, std::size_t points) {
        const std::string words = searched_words(text);
        std::size_t sum = 0;
        for (std::size_t at = words.find(phrase); at != words.npos; at = words.find(phrase, at + 1))
            sum += points;
        return sum;
    };
    constexpr std::size_t text_points = 1, cell_points = 3, first_cell_points = 50;
    std::size_t points = 0;
    for (const Block& block : section.blocks) {
        const bool is_heading = block.kind == Block::Kind::heading;
        const bool is_whole = is_heading && searched_words(block.text) == phrase;
        points += count(block.text, is_whole     ? 2 * heading_points
                                    : is_heading ? heading_points
                                                 : text_points);
        for (const std::string& line : block.lines) points += count(line, text_points);
        for (const std::vector<std::string>& row : block.table.cells)
            for (const std::string& cell : row)
                points += count(cell, &cell == &row.front() ? first_cell_points : cell_points);
    }
    return points;
}

std::vector<Section> make_sections() {
    std::vector<Section> sections;
    for (const Topic& topic : manual)
        for (Block& block : parse_markdown(topic.text)) {
            if (block.kind == Block::Kind::heading)
                sections.push_back({topic.name, bare(block.text), {}});
            sections.back().blocks.push_back(std::move(block));
        }
    return sections;
}

}  // namespace

const std::vector<Section>& all_sections() {
    static const std::vector<Section> sections = make_sections();
    return sections;
}

Section with_rows(Section section, std::string_view query) {
    const std::string phrase = searched_words(query);
    if (searched_words(section.heading).find(phrase) != std::string::npos) return section;
    for (Block& block : section.blocks) {
        const auto lacks_phrase = [&](const std::vector<std::string>& row) {
            return std::ranges::all_of(row, [&](const std::string& cell) {
                return searched_words(cell).find(phrase) == std::string::npos;
            });
        };
        io::Cells& cells = block.table.cells;
        const auto first = cells.begin() +
                           static_cast<std::ptrdiff_t>(std::min(block.table.headers, cells.size()));
        if (!std::all_of(first, cells.end(), lacks_phrase))
            cells.erase(std::remove_if(first, cells.end(), lacks_phrase), cells.end());
    }
    return section;
}

const Section* find_named_section(std::string_view name) {
    const NameRow* const row = find_other_name("topic", as_listed(name));
    if (row == nullptr || *row->words == '\0') return nullptr;
    for (const Section& section : all_sections())
        if (section.topic == row->of && section.heading == row->words) return &section;
    return nullptr;
}

std::vector<const Section*> find_sections(std::string_view query) {
    const std::string phrase = searched_words(query);
    std::vector<std::string> words;  // each between blanks
    for (std::size_t at = 0, end; (end = phrase.find(' ', at + 1)) != phrase.npos; at = end)
        words.push_back(phrase.substr(at, end - at + 1));
    std::vector<std::pair<std::size_t, const Section*>> found;
    const auto search = [&](const auto& points) {
        for (const Section& section : all_sections())
            if (const std::size_t count = points(section); count != 0)
                found.emplace_back(count, &section);
    };
    if (!words.empty()) search([&](const Section& section) { return points_of(section, phrase); });
    if (found.empty() && words.size() > 1)  // all of them, wherever they are
        search([&](const Section& section) {
            std::size_t least = heading_points;
            for (const std::string& word : words) least = std::min(least, points_of(section, word));
            return least;
        });
    std::ranges::stable_sort(found, std::greater<>(), [](const auto& one) { return one.first; });
    std::vector<const Section*> sections;
    sections.reserve(found.size());
    for (const auto& one : found) sections.push_back(one.second);
    return sections;
}

}  // namespace attn::cli
