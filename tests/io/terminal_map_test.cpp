// Heat maps on terminals: one text for each number of colours.
#include "io/plot/terminal.hpp"
#include "io/text/text.hpp"
#include "tests/support/support.hpp"

namespace terminal_map_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::test::lines_of;

const IsMasked is_future = [](std::size_t, std::size_t, std::size_t query, std::size_t key) {
    return key > query;
};

Report small_report(std::vector<std::string> tokens = {"Your", "way"}) {
    Report report;
    report.title_start = "causal  ";
    report.title_end = "  seed 7";
    report.query_labels = report.key_labels = std::move(tokens);
    Array<float> weights = Array<float>::from_shape({2, 2});
    weights(0, 0) = 1;
    weights(0, 1) = 0;
    weights(1, 0) = 0.25f;
    weights(1, 1) = 0.75f;
    report.arrays = {{"attention_weights", weights, {"q_len", "kv_len"}}};
    return report;
}

/// (tokens, tokens): the row's number over the last, so that rows have one colour each.
Report large_report(std::size_t tokens) {
    Report report;
    Array<float> weights = Array<float>::from_shape({tokens, tokens});
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights.data()[i] = static_cast<float>(i / tokens) / static_cast<float>(tokens - 1);
    report.arrays = {{"attention_weights", weights, {"q_len", "kv_len"}}};
    return report;
}

std::string drawn(const Report& report, const Terminal& terminal,
                  const IsMasked& is_masked = is_future) {
    const HeatMap map = make_heat_map(report, report.arrays[0], is_masked, ColorScale::fixed,
                                      limits_of(terminal, report.arrays[0]));
    return test::written([&](Output& out) { write_terminal(out, map, terminal); });
}

/// The text without its colours.
std::string plain(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at)
        if (text[at] == '\033')
            at = text.find('m', at);
        else
            result += text[at];
    return result;
}

Terminal terminal_in(const std::map<std::string, std::string>& environment, bool is_terminal,
                     std::size_t wide = 0) {
    return terminal_of(is_terminal, wide, [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
    });
}

TEST_CASE("terminal: each number of colours has its own codes for the same picture") {
    const auto row = [](ColorDepth depth) {
        return lines_of(drawn(small_report(), {depth, 80}))[3];
    };
    CHECK(row(ColorDepth::rgb) ==
          "way  \033[38;2;255;255;255;48;2;59;82;139m 25  "
          "\033[38;2;0;0;0;48;2;92;200;99m 75  \033[0m");
    CHECK(row(ColorDepth::ansi256) ==
          "way  \033[38;5;231;48;5;60m 25  \033[38;5;16;48;5;77m 75  \033[0m");
    const std::string few = row(ColorDepth::ansi16);
    CHECK(few.find("\033[") != std::string::npos);
    CHECK(few.find(";5;") == std::string::npos);
    for (ColorDepth depth : {ColorDepth::rgb, ColorDepth::ansi256, ColorDepth::ansi16})
        CHECK(plain(row(depth)) == "way   25   75  ");
}

TEST_CASE("terminal: a masked cell is not a cell of 0") {
    for (ColorDepth depth :
         {ColorDepth::none, ColorDepth::ansi16, ColorDepth::ansi256, ColorDepth::rgb}) {
        const std::string masked = drawn(small_report(), {depth, 80});
        const std::string zero = drawn(small_report(), {depth, 80}, nullptr);
        CHECK(lines_of(masked)[2] != lines_of(zero)[2]);
        CHECK(plain(masked).find("; blank: masked") != std::string::npos);
        CHECK(masked.find("masked") != std::string::npos);
        CHECK(zero.find("masked") == std::string::npos);
    }
}

TEST_CASE("terminal: large maps are half blocks, pooled to the terminal, which a line states") {
    for (const std::size_t columns : {40u, 80u, 200u}) {
        const Terminal terminal{ColorDepth::rgb, columns};
        const std::vector<std::string> lines =
            lines_of(drawn(large_report(1000), terminal, nullptr));
        CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
            return line.starts_with("each cell is the largest of ");
        }));
        CHECK(lines.size() < columns);
    }
    const std::string fits = drawn(large_report(30), {ColorDepth::ansi256, 80}, nullptr);
    CHECK(fits.find("largest of") == std::string::npos);
    CHECK(lines_of(fits).size() == 1 + 15 + 1 + 4);  // heading, two rows a line, ticks, legend
    CHECK(fits.find("\033[38;5;53;48;5;53m▀") != std::string::npos);
}

TEST_CASE(
    "terminal: scores go both ways from 0, and a number that is none is no colour of the scale") {
    Report report = small_report();
    Array<double> scores = Array<double>::from_shape({2, 2});
    scores(0, 0) = -4;
    scores(0, 1) = 4;
    scores(1, 0) = 0;
    scores(1, 1) = std::numeric_limits<double>::quiet_NaN();
    report.arrays = {{"scores", scores, {"q_len", "kv_len"}}};
    const std::vector<std::string> lines = lines_of(drawn(report, {ColorDepth::rgb, 80}, nullptr));
    CHECK(lines[2].find("48;2;5;48;97m -1. ") != std::string::npos);
    CHECK(lines[2].find("48;2;103;0;31m 1.  ") != std::string::npos);
    CHECK(lines[3].find("??") != std::string::npos);
    CHECK(lines[3].find("48;2;255;0;255m") != std::string::npos);
    CHECK(plain(lines[5]).find("-4 ") == 0);
}

TEST_CASE("terminal: the environment determines the numbers of colours and columns") {
    using Environment = std::map<std::string, std::string>;
    const Environment rgb{{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}};
    CHECK(terminal_in(rgb, true).depth == ColorDepth::rgb);
    CHECK(terminal_in(rgb, false).depth == ColorDepth::none);
    CHECK(terminal_in({{"TERM", "xterm-256color"}}, true).depth == ColorDepth::ansi256);
    CHECK(terminal_in({{"TERM", "xterm"}}, true).depth == ColorDepth::ansi16);
    CHECK(terminal_in({{"TERM", "dumb"}}, true).depth == ColorDepth::none);
    CHECK(terminal_in({}, true).depth == ColorDepth::none);
    CHECK(terminal_in({{"CLICOLOR_FORCE", "1"}}, false).depth == ColorDepth::ansi16);
    CHECK(terminal_in({{"CLICOLOR_FORCE", "0"}}, false).depth == ColorDepth::none);
    CHECK(terminal_in({{"CLICOLOR_FORCE", "1"}, {"COLORTERM", "24bit"}}, false).depth ==
          ColorDepth::rgb);
    CHECK(
        terminal_in({{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}, {"TERM", "xterm"}}, true).depth ==
        ColorDepth::none);
    CHECK(terminal_in({{"NO_COLOR", ""}, {"TERM", "xterm"}}, true).depth == ColorDepth::ansi16);
    CHECK(terminal_in({}, true, 120).columns == 120);
    CHECK(terminal_in({{"COLUMNS", "60"}}, true, 120).columns == 60);
    CHECK(terminal_in({{"COLUMNS", "x"}}, true, 0).columns == 80);
    CHECK(terminal_in({{"COLUMNS", "-1"}}, true, 0).columns == 80);
}

TEST_CASE(
    "terminal: no line is wider than the terminal, and small maps have numbers where they fit") {
    for (const std::size_t columns : {1u, 5u, 40u, 79u, 80u, 200u})
        for (const std::size_t tokens : {1u, 6u, 24u, 40u})
            for (unsigned ways = 0; ways < 8; ++ways) {
                const bool is_scores = (ways & 1) != 0, has_heads = (ways & 2) != 0;
                const ColorDepth depth = (ways & 4) != 0 ? ColorDepth::rgb : ColorDepth::none;
                Report report;
                report.title_start = "causal  ";
                for (std::size_t i = 0; i < tokens; ++i)
                    report.query_labels.push_back("token_number_" + std::to_string(i));
                report.key_labels = report.query_labels;
                Array<float> values =
                    Array<float>::from_shape({has_heads ? 3u : 1u, tokens, tokens});
                values.fill(0.5F);
                report.arrays = {{is_scores ? "scores" : "attention_weights",
                                  values,
                                  {"heads", "q_len", "kv_len"}}};
                const std::string text = plain(drawn(report, {depth, columns}));
                CAPTURE(text);
                CAPTURE(columns);
                std::size_t widest = 0;
                for (const std::string& line : lines_of(text))
                    widest = std::max(widest, display_width(line));
                CHECK(widest <= columns);
                CHECK(widest > 0);
                if (!has_heads && tokens <= 24 && columns >= 20)
                    CHECK((text.find("hundredths") != std::string::npos) ==
                          (columns >= tokens * (is_scores ? 4 : 3) + 5));
            }
}

TEST_CASE(
    "terminal: sixteen colours and none show as many steps as they have, lighter and darker") {
    for (const ColorDepth depth : {ColorDepth::none, ColorDepth::ansi16})
        for (const std::size_t tokens : {30u, 300u, 1024u}) {
            const std::string text = drawn(large_report(tokens), {depth, 80}, nullptr);
            std::size_t steps = 0;
            for (const char* step :
                 depth == ColorDepth::none
                     ? std::vector<const char*>{"·", ":", "+", "░", "▒", "▓", "█"}
                     : std::vector<const char*>{"34;", "94;", "36;", "92;", "93;"})
                steps += text.find(step) != std::string::npos ? 1U : 0U;
            CAPTURE(tokens);
            CHECK(steps == (depth == ColorDepth::none ? 7 : 5));
        }
    // Relative luminance of xterm's colours never falls.
    double before = -1;
    for (int i = 0; i <= 100; ++i) {
        const Color color = terminal_color(i / 100.0, false, ColorDepth::ansi16);
        const double light = 0.2126 * color.red + 0.7152 * color.green + 0.0722 * color.blue;
        CHECK(light >= before);
        before = light;
    }
}

}  // namespace
}  // namespace terminal_map_test
