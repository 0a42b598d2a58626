// stb_truetype does not validate its files: these are embedded in the program.
#include "io/plot/text_line.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include <fribidi.h>
#include <zlib.h>

#include "io/plot/fonts/embedded_fonts.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// The allocations of stb_truetype; freed all at once.
class Scratch {
public:
    void* take(std::size_t size) {
        blocks_.push_back(
            std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1));
        return blocks_.back().get();
    }

private:
    std::vector<std::unique_ptr<std::max_align_t[]>> blocks_;
};

}  // namespace
}  // namespace attn::io

#define STBTT_STATIC
#define STBTT_malloc(size, scratch) static_cast<attn::io::Scratch*>(scratch)->take(size)
#define STBTT_free(block, scratch) static_cast<void>(block), static_cast<void>(scratch)
#define STB_TRUETYPE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <stb_truetype.h>
#pragma GCC diagnostic pop

namespace attn::io {
namespace {

std::vector<unsigned char> inflated(const EmbeddedFont& font) {
    std::vector<unsigned char> file(font.size);
    z_stream state{};
    constexpr int raw = -MAX_WBITS;
    if (::inflateInit2(&state, raw) != Z_OK) throw std::bad_alloc();
    state.next_in = const_cast<Bytef*>(font.deflated);  // zlib only reads it
    state.avail_in = static_cast<uInt>(font.deflated_size);
    state.next_out = file.data();
    state.avail_out = static_cast<uInt>(file.size());
    const int outcome = ::inflate(&state, Z_FINISH);
    ::inflateEnd(&state);
    if (outcome != Z_STREAM_END) throw std::bad_alloc();
    return file;
}

class Font {
public:
    explicit Font(const EmbeddedFont& font) : file_(inflated(font)) {
        stbtt_InitFont(&info_, file_.data(), 0);
        units_ = 1 / static_cast<double>(stbtt_ScaleForMappingEmToPixels(&info_, 1));
    }
    const stbtt_fontinfo& info() const { return info_; }
    double units_per_em() const { return units_; }

private:
    std::vector<unsigned char> file_;
    stbtt_fontinfo info_{};
    double units_ = 0;
};

template <std::size_t number>
const Font& opened() {
    static const Font font(embedded_fonts[number]);
    return font;
}

/// Inflated when a text first needs it.
const Font& font(std::size_t number) {
    constexpr std::array open{opened<0>, opened<1>, opened<2>, opened<3>};
    static_assert(open.size() == std::tuple_size_v<decltype(embedded_fonts)>);
    return open[number]();
}

/// Scales coordinates so that they can be rotated as integers, and rotates them.
void turn_outline(stbtt_vertex* vertices, int count, int finer, Turn turn) {
    const Direction along = direction_of(turn);
    const auto part = [&](double value) {
        return static_cast<stbtt_vertex_type>(
            std::clamp(std::lround(finer * value), -32767L, 32767L));
    };
    const auto turned = [&](stbtt_vertex_type& x, stbtt_vertex_type& y) {
        const stbtt_vertex_type right = x;
        x = part(along.across * right - along.up * y);
        y = part(along.up * right + along.across * y);
    };
    for (stbtt_vertex* v = vertices; v != vertices + count; ++v) {
        turned(v->x, v->y);
        turned(v->cx, v->cy);
        turned(v->cx1, v->cy1);
    }
}

}  // namespace

Glyph glyph_of(char32_t character) {
    for (std::size_t at = 0; at < embedded_fonts.size(); ++at) {
        const auto number = static_cast<std::uint8_t>(at);
        const Font& in = font(number);
        const int index = stbtt_FindGlyphIndex(&in.info(), static_cast<int>(character));
        if (index == 0) continue;
        int advance = 0, bearing = 0;
        stbtt_GetGlyphHMetrics(&in.info(), index, &advance, &bearing);
        return {number, index, advance / in.units_per_em()};
    }
    constexpr char32_t replacement_character = 0xfffd;  // the first font has it
    return glyph_of(replacement_character);
}

double kerning(const Glyph& left, const Glyph& right) {
    if (left.font != right.font) return 0;
    const Font& in = font(left.font);
    return stbtt_GetGlyphKernAdvance(&in.info(), left.index, right.index) / in.units_per_em();
}

Coverage covered_by(const Glyph& glyph, double size, Turn turn, double x, double y) {
    Scratch scratch;
    stbtt_fontinfo info = font(glyph.font).info();
    info.userdata = &scratch;
    stbtt_vertex* vertices = nullptr;
    const int count = stbtt_GetGlyphShape(&info, glyph.index, &vertices);
    if (count == 0) return {};
    constexpr double fine = 2048;
    const double units = font(glyph.font).units_per_em();
    const int finer = std::max(1, static_cast<int>(fine / units));
    turn_outline(vertices, count, finer, turn);
    const double scale = size / (finer * units);

    int min_x = std::numeric_limits<int>::max(), max_x = std::numeric_limits<int>::min();
    int min_y = min_x, max_y = max_x;
    const auto reach = [&](int across, int up) {
        min_x = std::min(min_x, across);
        max_x = std::max(max_x, across);
        min_y = std::min(min_y, up);
        max_y = std::max(max_y, up);
    };
    for (const stbtt_vertex* v = vertices; v != vertices + count; ++v) {
        reach(v->x, v->y);
        if (v->type == STBTT_vcurve || v->type == STBTT_vcubic) reach(v->cx, v->cy);
        if (v->type == STBTT_vcubic) reach(v->cx1, v->cy1);
    }
    Coverage coverage;
    constexpr int spare = 1;  // it works in float
    coverage.left = static_cast<int>(std::floor(x + scale * min_x)) - spare;
    coverage.top = static_cast<int>(std::floor(y - scale * max_y)) - spare;
    coverage.width = static_cast<int>(std::ceil(x + scale * max_x)) + spare - coverage.left;
    coverage.height = static_cast<int>(std::ceil(y - scale * min_y)) + spare - coverage.top;
    coverage.parts.assign(
        static_cast<std::size_t>(coverage.width) * static_cast<std::size_t>(coverage.height), 0);
    stbtt__bitmap bitmap{coverage.width, coverage.height, coverage.width, coverage.parts.data()};
    constexpr float flat = 0.25F;  // pixels that a curve may miss
    constexpr int downwards = 1;
    stbtt_Rasterize(&bitmap, flat, vertices, count, static_cast<float>(scale),
                    static_cast<float>(scale), static_cast<float>(x - coverage.left),
                    static_cast<float>(y - coverage.top), 0, 0, downwards, &scratch);
    return coverage;
}

namespace {

/// Joins letters, or selects the style of one, and is invisible.
bool is_unseen(char32_t c) {
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2060 && c <= 0x2064) ||
           (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

/// Hebrew is the first right-to-left block.
bool may_turn(char32_t c) {
    constexpr char32_t first = 0x590;
    return c >= first;
}

/// From the left, with Arabic letters in their contextual forms. Source: Unicode's bidirectional
/// algorithm, UAX #9, by GNU FriBidi.
std::u32string in_seen_order(const std::u32string& text) {
    const std::vector<FriBidiChar> written(text.begin(), text.end());
    std::vector<FriBidiChar> seen(written.size() + 1);  // and a 0
    FriBidiParType direction = FRIBIDI_PAR_ON;
    if (fribidi_log2vis(written.data(), static_cast<FriBidiStrIndex>(written.size()), &direction,
                        seen.data(), nullptr, nullptr, nullptr) == 0)
        throw std::bad_alloc();
    return {seen.begin(), std::ranges::find(seen, FriBidiChar{0})};
}

}  // namespace

TextLine text_line(std::string_view text) {
    std::u32string characters;
    characters.reserve(text.size());
    while (!text.empty()) characters += take_character(text);
    if (std::ranges::any_of(characters, may_turn)) characters = in_seen_order(characters);

    TextLine line;
    line.glyphs.reserve(characters.size());
    for (char32_t character : characters) {
        if (is_unseen(character)) continue;
        const Glyph glyph = glyph_of(character);
        if (!line.glyphs.empty()) line.width += kerning(line.glyphs.back().glyph, glyph);
        line.glyphs.push_back({glyph, line.width});
        line.width += glyph.advance;
        line.is_plain = line.is_plain && glyph.font == 0 && !may_turn(character);
    }
    return line;
}

double text_width(std::string_view text, double size) {
    return size * text_line(text).width;
}

std::string label_text(std::string_view text, std::size_t columns) {
    constexpr std::size_t max_marks = 8;  // per letter; some texts stack thousands
    std::string label, short_label;
    std::size_t width = 0, marks = 0;
    const std::string shown = printable(text);
    for (std::string_view rest = shown; !rest.empty();) {
        std::string one;
        append_utf8(one, take_character(rest));
        const std::size_t more = display_width(one);
        marks = more == 0 ? marks + 1 : 0;
        if (marks > max_marks) continue;
        width += more;
        if (width > columns) return short_label + "…";
        label += one;
        if (width < columns) short_label = label;
    }
    return label;
}

}  // namespace attn::io
