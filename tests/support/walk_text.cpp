// A page of `attn explain`, read back; see walk_text.hpp.
#include "tests/support/walk_text.hpp"
#include "io/text/text.hpp"

namespace attn::test {

std::string joined(const Words& words) {
    std::string text;
    for (const std::string& word : words) text += word + " ";
    return text;
}

std::string good(const Words& arguments, const std::string& input, std::size_t columns) {
    ::setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    const Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "");
    CHECK(outcome.code == 0);
    return outcome.out;
}

std::string in_one_line(std::string page) {
    std::replace(page.begin(), page.end(), '\n', ' ');
    return page;
}

bool says(const std::string& page, const std::string& words) {
    return in_one_line(page).find(words) != std::string::npos;
}

Words numbers_of(const std::string& page) {
    Words lines = lines_of(page);
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("    "); });
    return lines;
}

bool is_near(double a, double b, double tolerance) {
    return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

std::string in_paragraphs(const std::string& page) {
    std::string text;
    bool after_words = false;
    for (const std::string& line : lines_of(page)) {
        const bool is_item = line.starts_with("- ");
        const bool goes_on_in_item = line.starts_with("  ") && line.size() > 2 && line[2] != ' ';
        const bool is_words = !line.empty() && (line[0] != ' ' || goes_on_in_item) &&
                              (is_item || line.find_first_not_of("=-.") != std::string::npos);
        if (is_words && after_words && !is_item) text.back() = ' ';
        text += line.substr(goes_on_in_item ? 2 : 0) + "\n";
        after_words = is_words;
    }
    return text;
}

std::string unfolded(const std::string& page) {
    std::string text;
    for (const std::string& line : lines_of(page)) {
        const bool is_words =
            !line.empty() && line[0] != ' ' && line.find_first_not_of("=-.") != std::string::npos;
        const bool goes_on =
            line.starts_with("        ") || (is_words && !text.empty() && !text.ends_with("\n\n"));
        if (goes_on && !text.empty()) text.back() = ' ';
        text +=
            line.substr(goes_on ? std::min(line.find_first_not_of(' '), line.size()) : 0) + "\n";
    }
    // Blanks between parts are the fold's.
    std::string single;
    for (char c : text)
        if (c != ' ' || single.empty() || single.back() != ' ') single += c;
    return single;
}

std::vector<double> numbers_in(const std::string& text) {
    std::vector<double> numbers;
    for (const char* at = text.c_str(); *at != '\0';) {
        char* end = nullptr;
        const double number = std::strtod(at, &end);
        if (end == at) {
            ++at;
            continue;
        }
        numbers.push_back(number);
        at = end;
    }
    return numbers;
}

namespace {

/// Cells of a table's line: separated by two blanks or more.
Words cells_of(const std::string& line) {
    Words cells;
    for (std::size_t at = line.find_first_not_of(' '), end; at < line.size();
         at = line.find_first_not_of(' ', end)) {
        end = std::min(line.find("  ", at), line.size());
        cells.push_back(line.substr(at, end - at));
    }
    return cells;
}

/// A masked cell is a dot: a score of -Infinity, or no weight.
std::string with_masked(std::string line, const std::string& name) {
    const bool is_score = name.find("scores") != std::string::npos && name != "exp_scores";
    for (std::size_t at; (at = (line + " ").find(" . ")) != std::string::npos;)
        line.replace(at + 1, 1, is_score ? "-inf" : "0");
    return line;
}

/// Levels of headings, and 0 for what is none.
std::vector<int> levels_of(const std::string& page) {
    const Words lines = lines_of(page);
    std::vector<int> levels;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].empty()) continue;
        const std::string rule = i + 1 < lines.size() ? lines[i + 1] : "";
        const bool is_heading = !rule.empty() && rule.size() == io::display_width(lines[i]) &&
                                rule.find_first_not_of(rule[0]) == std::string::npos &&
                                std::string("=-.").find(rule[0]) != std::string::npos;
        levels.push_back(!is_heading ? 0 : rule[0] == '=' ? 1 : rule[0] == '-' ? 2 : 3);
        if (is_heading) ++i;
    }
    return levels;
}

}  // namespace

void check_headings(const std::string& page) {
    const std::vector<int> levels = levels_of(page);
    for (std::size_t i = 0; i < levels.size(); ++i) {
        if (levels[i] == 0) continue;
        CAPTURE(i);
        REQUIRE(i + 1 < levels.size());
        CHECK((levels[i + 1] == 0 || levels[i + 1] > levels[i]));
    }
}

std::vector<double> table_row(const std::string& page, const std::string& name) {
    const Words lines = lines_of(page);
    for (const std::string& line : lines)
        if (line.starts_with("    " + name + " "))
            return numbers_in(with_masked(line.substr(4 + name.size()), name));
    for (auto line = lines.begin(); line != lines.end(); ++line) {
        const Words header = cells_of(*line);
        const auto column = std::find(header.begin(), header.end(), name) - header.begin();
        if (!line->starts_with("    key ") || column == std::ssize(header)) continue;
        std::vector<double> numbers;
        while (++line != lines.end() && !line->empty())
            numbers.push_back(
                std::stod(cells_of(with_masked(*line, name)).at(static_cast<std::size_t>(column))));
        return numbers;
    }
    // Where nothing drops weights, they are those of the softmax.
    if (name == "weights_before_dropout") return table_row(page, "attention_weights");
    return {};
}

std::vector<double> vector_of(const std::string& page, const std::string& name) {
    for (const std::string& line : lines_of(page)) {
        const std::size_t open = line.find("] = [");
        if (line.starts_with("    " + name + "[") && open != std::string::npos)
            return numbers_in(line.substr(open + 5, line.rfind("]") - open - 5));
    }
    return {};
}

std::vector<double> key_row(const std::string& page, const std::string& name, std::size_t key) {
    const Words lines = lines_of(page);
    const auto header = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find("  " + name + " (d_") != std::string::npos && line.starts_with("    key");
    });
    // Without a cache they are those of the layer.
    if (header == lines.end() && name.starts_with("present_"))
        return key_row(page, name == "present_key" ? "keys" : "values", key);
    if (lines.end() - header <= static_cast<std::ptrdiff_t>(key) + 1) return {};
    const std::string& line = header[static_cast<std::ptrdiff_t>(key) + 1];
    return numbers_in(line.substr(line.find('[') + 1));
}

std::string head_part(const std::string& page, std::size_t head) {
    const std::size_t start = page.find("\nHead " + std::to_string(head) + "\n");
    if (start == std::string::npos) return page;
    const std::size_t next = page.find("\nHead " + std::to_string(head + 1) + "\n");
    return page.substr(start, next - start);
}

}  // namespace attn::test
