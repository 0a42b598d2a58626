// The pictures of a request: heat maps on the terminal and in files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "io/file/output_file.hpp"
#include "io/plot/heat_map.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The format that the path's suffix specifies. Errors: kind usage at `where`.
const io::PictureFormat& picture_format(const std::string& path, const std::string& where);

/// Whether the array has rank 2 to 5, or 6 with layers.
bool can_be_drawn(const NamedArray& array);

/// Errors: kind usage for settings that would have no effect, and for a plot without a known
/// suffix.
void check_pictures(const Request& request);

/// The arrays to draw: those that are `named`, or all for the name "all". If none is named, the
/// attention weights, of each stack of a model, if they exist and `all` is false, else all, with
/// the weights first. Errors: kind usage at `where`, listing the arrays.
std::vector<const NamedArray*> arrays_to_draw(const io::Report& report,
                                              const std::vector<std::string>& named, bool all,
                                              const std::string& where);

/// Draws for the terminal at `descriptor`, where the text will be shown.
std::string terminal_text(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                          io::ColorScale scale, int descriptor);

void write_plot(io::Output& out, const io::Report& report,
                const std::vector<const NamedArray*>& arrays, io::ColorScale scale,
                const io::PictureFormat& format);

/// All pictures of a request.
class Pictures {
public:
    /// Draws without showing anything. Errors: kinds usage and unsupported for what cannot be
    /// drawn; kind io.
    Pictures(const Request& request, const io::Report& given);

    /// Makes the file visible. Errors: kind io.
    void commit();

    /// Writes the text for the terminal. Errors: kind io.
    void show() const;

private:
    std::optional<io::OutputFile> file_;
    std::string text_;  // for the terminal
    int descriptor_;    // of the terminal text
};

}  // namespace attn::cli
