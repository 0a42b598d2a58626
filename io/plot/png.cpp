// Heat maps as PNG pictures; see png.hpp.
#include "io/plot/png.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>

#include <png.h>

#include "core/base/error.hpp"
#include "io/plot/fixed_font.hpp"
#include "io/plot/label_text.hpp"
#include "io/text/display_width.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// The colours of a picture, each with a number.
class Palette {
public:
    /// Empty where there are more than a palette holds.
    std::optional<std::uint8_t> number_of(const Color& color) {
        const std::uint32_t key = 1u << 24 | static_cast<std::uint32_t>(color.red) << 16 |
                                  static_cast<std::uint32_t>(color.green) << 8 | color.blue;
        std::size_t slot = (key * 2654435761u) >> 22;  // Knuth's multiplicative hashing
        for (; slots_[slot].key != key; slot = (slot + 1) % slots_.size()) {
            if (slots_[slot].key != 0) continue;
            if (colors_.size() == most) return std::nullopt;
            slots_[slot] = {key, static_cast<std::uint8_t>(colors_.size())};
            colors_.push_back(color);
            break;
        }
        return slots_[slot].number;
    }
    const std::vector<Color>& colors() const { return colors_; }

private:
    static constexpr std::size_t most = 256;
    struct Slot {
        std::uint32_t key = 0;  // 0: empty
        std::uint8_t number = 0;
    };
    std::array<Slot, 1024> slots_{};
    std::vector<Color> colors_;
};

/// The number of each pixel's colour; empty where there are too many colours.
std::vector<std::uint8_t> numbers_of(const Pixels& pixels, Palette& palette) {
    std::vector<std::uint8_t> numbers;
    numbers.reserve(pixels.colors.size());
    for (std::size_t i = 0; i < pixels.colors.size(); ++i) {
        if (i > 0 && pixels.colors[i] == pixels.colors[i - 1]) {
            numbers.push_back(numbers.back());
            continue;
        }
        const auto number = palette.number_of(pixels.colors[i]);
        if (!number) return {};
        numbers.push_back(*number);
    }
    return numbers;
}

class PixelCanvas : public Canvas {
public:
    PixelCanvas(std::size_t width, std::size_t height) : pixels_(width, height, background) {}

    /// Of the font, for the texts that follow.
    void set_scale(int scale) { scale_ = scale; }
    const Pixels& pixels() const { return pixels_; }

    void fill(const Box& box, const Color& color) override {
        const Corners in = corners_of(box);
        for (std::size_t y = in.top; y < in.bottom; ++y)
            std::fill_n(&pixels_.at(in.left, y), in.right - in.left, color);
    }

    void hatch(const Box& box) override {
        const Corners in = corners_of(box);
        constexpr std::size_t apart = 8;
        for (std::size_t y = in.top; y < in.bottom; ++y)
            for (std::size_t x = in.left; x < in.right; ++x)
                pixels_.at(x, y) = hatch_color(x, y, apart);
    }

    void cells(const HeatMap& map, std::size_t panel, const Box& box) override {
        if (map.rows == 0 || map.columns == 0) return;
        const int wide = box.width / static_cast<int>(map.columns);
        const int high = box.height / static_cast<int>(map.rows);
        Box cell{box.x, box.y, wide, high};
        for (std::size_t row = 0; row < map.rows; ++row, cell.y += high) {
            cell.x = box.x;
            for (std::size_t column = 0; column < map.columns; ++column, cell.x += wide)
                if (map.is_blocked(panel, row, column))
                    hatch(cell);
                else
                    fill(cell, cell_color(map, panel, row, column));
        }
    }

    void text(int x, int y, const std::string& text, Anchor anchor, bool turned) override {
        const int width =
            static_cast<int>(display_width(text)) * static_cast<int>(glyph_width) * scale_;
        const int before = anchor == Anchor::start    ? 0
                           : anchor == Anchor::middle ? width / 2
                                                      : width;
        const int above = static_cast<int>(glyph_height) * scale_ / 2;
        const Pen pen{turned ? x - above : x - before, turned ? y + before : y - above, turned};
        std::string_view rest = text;
        int at = 0;
        while (!rest.empty()) {
            const std::string_view all = rest;
            const char32_t character = take_character(rest);
            const int columns =
                static_cast<int>(display_width(all.substr(0, all.size() - rest.size())));
            if (const auto glyph = glyph_of(character))
                draw_glyph(pen, at, *glyph);
            else if (columns > 0)
                draw_unknown(pen, at, columns);
            at += columns * static_cast<int>(glyph_width);
        }
    }

private:
    struct Corners {
        std::size_t left, top, right, bottom;
    };
    /// Where a text starts; turned ones go up from there.
    struct Pen {
        int x, y;
        bool turned;
    };

    Corners corners_of(const Box& box) const {
        const auto inside = [](int at, std::size_t end) {
            return std::min(static_cast<std::size_t>(std::max(at, 0)), end);
        };
        return {inside(box.x, pixels_.width), inside(box.y, pixels_.height),
                inside(box.x + box.width, pixels_.width),
                inside(box.y + box.height, pixels_.height)};
    }

    /// One pixel of the font, (across, down) from where the text starts.
    void dot(const Pen& pen, int across, int down) {
        if (pen.turned)
            fill({pen.x + down * scale_, pen.y - (across + 1) * scale_, scale_, scale_}, ink);
        else
            fill({pen.x + across * scale_, pen.y + down * scale_, scale_, scale_}, ink);
    }

    void draw_glyph(const Pen& pen, int at, const Glyph& glyph) {
        for (int row = 0; row < static_cast<int>(glyph_height); ++row)
            for (int column = 0; column < static_cast<int>(glyph_width); ++column)
                if ((glyph[static_cast<std::size_t>(row)] >> (5 - column) & 1) != 0)
                    dot(pen, at + column, row);
    }

    /// A box for a character that the font does not hold.
    void draw_unknown(const Pen& pen, int at, int columns) {
        const int last = columns * static_cast<int>(glyph_width) - 2;
        constexpr int top = 2, bottom = 10;
        for (int row = top; row <= bottom; ++row)
            for (int column = 0; column <= last; ++column)
                if (row == top || row == bottom || column == 0 || column == last)
                    dot(pen, at + column, row);
    }

    Pixels pixels_;
    int scale_ = 1;
};

}  // namespace

std::string png_of(const Pixels& pixels) {
    Palette palette;
    const std::vector<std::uint8_t> numbers = numbers_of(pixels, palette);
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(pixels.width);
    image.height = static_cast<png_uint_32>(pixels.height);
    image.format = numbers.empty() ? PNG_FORMAT_RGB : PNG_FORMAT_RGB_COLORMAP;
    image.flags = PNG_IMAGE_FLAG_FAST;  // no filters, which do not help maps, and light deflation
    image.colormap_entries = static_cast<png_uint_32>(palette.colors().size());
    const void* data = numbers.empty() ? static_cast<const void*>(pixels.colors.data())
                                       : static_cast<const void*>(numbers.data());
    // Deflation adds little at worst.
    static_assert(sizeof(Color) == 3);
    const std::size_t bytes = pixels.colors.size() * (numbers.empty() ? sizeof(Color) : 1);
    std::string png(bytes + bytes / 512 + pixels.height + 8192, '\0');
    png_alloc_size_t size = png.size();
    if (png_image_write_to_memory(&image, png.data(), &size, 0, data, 0, palette.colors().data()) ==
        0) {
        // The library says it in words only.
        if (std::string_view(image.message).find("memory") != std::string_view::npos)
            throw std::bad_alloc();
        throw Error(ErrorKind::unsupported, "PNG", image.message);
    }
    png.resize(size);
    return png;
}

Layout pixel_layout(const HeatMap& map) {
    const auto with_scale = [&](int scale) {
        constexpr int width = glyph_width, height = glyph_height, room = 1400, largest_cell = 80;
        return layout_of(map, {scale * width, scale * height, room, largest_cell});
    };
    constexpr int screen = 2500;
    Layout layout = with_scale(2);
    if (std::max(layout.width, layout.height) > screen) return with_scale(3);
    if (layout.shows_all_labels()) return layout;
    const Layout small = with_scale(1);
    return small.shows_all_labels() ? small : layout;
}

void write_png(Output& out, const std::vector<HeatMap>& maps) {
    std::vector<Layout> layouts;
    int width = 1, height = 0;
    for (const HeatMap& map : maps) {
        layouts.push_back(pixel_layout(map));
        width = std::max(width, layouts.back().width);
        height += layouts.back().height;
    }
    constexpr std::int64_t most_pixels = std::int64_t{1} << 26;
    if (std::int64_t{width} * height > most_pixels)
        throw Error(ErrorKind::unsupported, maps.front().array,
                    "a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                        " pixels; expected fewer matrices, or .svg or .html");
    PixelCanvas canvas(static_cast<std::size_t>(width),
                       static_cast<std::size_t>(std::max(height, 1)));
    int y = 0;
    for (std::size_t i = 0; i < maps.size(); ++i) {
        canvas.set_scale(layouts[i].style.line / static_cast<int>(glyph_height));
        draw(canvas, maps[i], layouts[i], y);
        y += layouts[i].height;
    }
    out << png_of(canvas.pixels());
}

}  // namespace attn::io
