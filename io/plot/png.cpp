#include "io/plot/picture.hpp"

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <new>
#include <unordered_map>

#include <png.h>
#include <zlib.h>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

/// The pixels as numbers of their colours, or nothing if these are more than a palette holds.
/// Whether colours change so often between pixels that searching for repeats is not worthwhile.
struct IndexedPixels {
    std::vector<png_color> colors{};
    std::vector<std::uint8_t> numbers{};
    bool are_noisy = false;
};

IndexedPixels indexed(const Pixels& pixels) {
    constexpr std::size_t most = 256, quiet_run = 8;
    const std::size_t count = pixels.colors.size();
    IndexedPixels result;
    result.numbers.resize(count);
    std::unordered_map<int, std::uint8_t> known;
    std::size_t changes = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Color& color = pixels.colors[i];
        if (i > 0 && color == pixels.colors[i - 1]) {
            result.numbers[i] = result.numbers[i - 1];
            continue;
        }
        ++changes;
        const auto [found, is_new] =
            known.try_emplace(color.red << 16 | color.green << 8 | color.blue,
                              static_cast<std::uint8_t>(result.colors.size()));
        if (is_new && result.colors.size() == most) return {};
        if (is_new) result.colors.push_back({color.red, color.green, color.blue});
        result.numbers[i] = found->second;
    }
    result.are_noisy = changes > count / quiet_run;
    return result;
}

/// The destination of libpng. libpng is written in C: exceptions must not pass through it.
struct Sink {
    char* data;
    std::size_t capacity, size = 0;
    std::array<char, 120> message{};
};

extern "C" {
static void put_bytes(png_structp png, png_bytep bytes, png_size_t count) {
    Sink& sink = *static_cast<Sink*>(png_get_io_ptr(png));
    if (count > sink.capacity - sink.size) png_error(png, "more bytes than deflation may make");
    std::memcpy(sink.data + sink.size, bytes, count);
    sink.size += count;
}
static void put_nothing(png_structp) {}
static void stop(png_structp png, png_const_charp message) {
    Sink& sink = *static_cast<Sink*>(png_get_error_ptr(png));
    std::strncpy(sink.message.data(), message, sink.message.size() - 1);
    png_longjmp(png, 1);
}
static void pass_over(png_structp, png_const_charp) {}
}

/// Rows of one byte per pixel with these colours, or without colours of three bytes.
struct Raster {
    png_uint_32 width, height;
    const png_byte* rows;
    const png_color* colors;
    int color_count;
    bool is_noisy;
};

/// Returns false on failure: the sink has the message, or none if memory ran out.
bool write_raster(Sink& sink, const Raster& raster) noexcept {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, stop, pass_over);
    png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr || setjmp(png_jmpbuf(png)) != 0) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_set_write_fn(png, &sink, put_bytes, put_nothing);
    const bool has_palette = raster.color_count != 0;
    png_set_IHDR(png, info, raster.width, raster.height, 8,
                 has_palette ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (has_palette) png_set_PLTE(png, info, raster.colors, raster.color_count);
    // Filters do not help maps, and deflation only helps if neighbours are equal.
    constexpr int light = 3, chunk = 1 << 16;
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_NO_FILTERS);
    png_set_compression_level(png, light);
    png_set_compression_strategy(png, raster.is_noisy ? Z_RLE : Z_DEFAULT_STRATEGY);
    png_set_compression_buffer_size(png, chunk);
    png_write_info(png, info);
    const std::size_t pitch = std::size_t{raster.width} * (has_palette ? 1 : sizeof(Color));
    for (png_uint_32 row = 0; row < raster.height; ++row)
        png_write_row(png, raster.rows + row * pitch);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

/// The greys between a text and white. Few, so that a palette can hold them and all colours of
/// cells.
constexpr int grey_levels = 10;

/// `color` blended over a background with this coverage, of 255.
Color blended(const Color& ground, const Color& color, std::uint8_t covered) {
    const auto mixed = [](int from, int to, double part) {
        return static_cast<std::uint8_t>(std::lround(from + (to - from) * part));
    };
    double part = covered / 255.0;
    Color to = color;
    if (ground == background) {
        constexpr double darkest = 255 - ink.red;
        part = std::round(grey_levels * part * (255 - color.red) / darkest) / grey_levels;
        to = ink;
    }
    return {mixed(ground.red, to.red, part), mixed(ground.green, to.green, part),
            mixed(ground.blue, to.blue, part)};
}

class PixelCanvas : public Canvas {
public:
    PixelCanvas(std::size_t width, std::size_t height) : pixels_(width, height, background) {}

    const Pixels& pixels() const { return pixels_; }

    void fill(const Box& box, const Color& color) override {
        const auto inside = [](int at, std::size_t end) {
            return std::min(static_cast<std::size_t>(std::max(at, 0)), end);
        };
        const std::size_t left = inside(box.x, pixels_.width);
        const std::size_t right = inside(box.x + box.width, pixels_.width);
        const std::size_t bottom = inside(box.y + box.height, pixels_.height);
        for (std::size_t y = inside(box.y, pixels_.height); y < bottom; ++y)
            std::fill_n(&pixels_.at(left, y), right - left, color);
    }

    void cells(const HeatMap& map, std::size_t panel, const Box& box, int gap) override {
        if (map.rows == 0 || map.columns == 0) return;
        const int wide = box.width / static_cast<int>(map.columns);
        const int high = box.height / static_cast<int>(map.rows);
        Box cell{box.x, box.y, wide - gap, high - gap};
        for (std::size_t row = 0; row < map.rows; ++row, cell.y += high) {
            cell.x = box.x;
            const RowColors colors(map, panel, row);
            for (std::size_t column = 0; column < map.columns; ++column, cell.x += wide)
                fill(cell, colors.of(column));
        }
    }

    void text(int x, int y, const std::string& text, const Lettering& lettering) override {
        const TextLine line = text_line(text);
        constexpr std::array starts{0.0, -0.5, -1.0};  // of each anchor
        const double size = lettering.size,
                     start = starts[static_cast<std::size_t>(lettering.anchor)];
        const auto [across, up] = direction_of(lettering.turn);
        for (const PlacedGlyph& placed : line.glyphs) {
            const double along = size * (placed.at + start * line.width), below = size * baseline;
            draw(covered_by(placed.glyph, size, lettering.turn, x + across * along + up * below,
                            y - up * along + across * below),
                 lettering.color);
        }
    }

private:
    void draw(const Coverage& glyph, const Color& color) {
        for (int row = 0; row < glyph.height; ++row)
            for (int column = 0; column < glyph.width; ++column) {
                const int x = glyph.left + column, y = glyph.top + row;
                const int index = row * glyph.width + column;
                const std::uint8_t part = glyph.parts[static_cast<std::size_t>(index)];
                if (part == 0 || x < 0 || y < 0) continue;
                const auto across = static_cast<std::size_t>(x), down = static_cast<std::size_t>(y);
                if (across >= pixels_.width || down >= pixels_.height) continue;
                Color& pixel = pixels_.at(across, down);
                pixel = blended(pixel, color, part);
            }
    }

    Pixels pixels_;
};

}  // namespace

std::string png_of(const Pixels& pixels) {
    static_assert(sizeof(Color) == 3 && sizeof(png_color) == 3);
    const auto [colors, numbers, are_noisy] = indexed(pixels);
    const bool has_palette = !numbers.empty();
    const void* rows = has_palette ? static_cast<const void*>(numbers.data())
                                   : static_cast<const void*>(pixels.colors.data());
    // In the worst case, deflation adds little.
    const std::size_t bytes = pixels.colors.size() * (has_palette ? 1 : sizeof(Color));
    std::string png(bytes + bytes / 512 + pixels.height + 8192, '\0');
    Sink sink{png.data(), png.size()};
    if (!write_raster(
            sink, {static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height),
                   static_cast<const png_byte*>(rows), colors.data(),
                   static_cast<int>(colors.size()), are_noisy})) {
        // The library reports it only as text.
        const std::string_view message = sink.message.data();
        if (message.empty() || message.find("memory") != std::string_view::npos)
            throw std::bad_alloc();
        throw Error(ErrorKind::unsupported, "PNG", std::string(message));
    }
    png.resize(sink.size);
    return png;
}

Layout pixel_layout(const HeatMap& map) {
    constexpr int text = 24, larger_text = 36, screen = 3300, wide = 2400, high = 1800;
    Layout layout = layout_of(map, {text, wide, high});
    if (std::max(layout.width, layout.height) > screen)
        layout = layout_of(map, {larger_text, wide, high});
    return layout;
}

void write_png(Output& out, const std::vector<HeatMap>& maps) {
    const auto [layouts, width, height] = Stack(maps, pixel_layout);
    constexpr std::int64_t max_pixels = std::int64_t{1} << 26;
    if (std::int64_t{width} * height > max_pixels)
        throw Error(ErrorKind::unsupported, maps.front().array, "a picture of ", width, " x ",
                    height, " pixels; expected fewer matrices, or .svg or .html");
    PixelCanvas canvas(static_cast<std::size_t>(width), static_cast<std::size_t>(height));
    int y = 0;
    for (std::size_t i = 0; i < maps.size(); ++i) {
        draw(canvas, maps[i], layouts[i], y);
        y += layouts[i].height;
    }
    out << png_of(canvas.pixels());
}

}  // namespace attn::io
