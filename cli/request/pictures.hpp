// The pictures that a request asks for: heat maps on the terminal and in files.
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

/// By the suffix. Errors: kind usage at `where`.
const io::PictureFormat& picture_format(const std::string& path, const std::string& where);

/// Arrays of rank 2 to 4 can.
bool can_be_drawn(const NamedArray& array);

bool wants_pictures(const Request& request);

/// Errors: kind usage, for settings of pictures that would be ignored or cannot be drawn.
void check_pictures(const Request& request);

/// Which arrays are drawn: those that are `named`, or the weights where they are there, or all of
/// rank 2 to 4; `all` draws all in any case. Errors: kind usage at `where`, listing what there is.
std::vector<const NamedArray*> arrays_to_draw(const io::Report& report,
                                              const std::vector<std::string>& named, bool all,
                                              const std::string& where);

/// Draws for the terminal that the text will go to.
std::string terminal_text(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                          const io::IsBlocked& is_blocked, io::ColorScale scale, int descriptor);

void write_plot(io::Output& out, const io::Report& report,
                const std::vector<const NamedArray*>& arrays, const io::IsBlocked& is_blocked,
                io::ColorScale scale, const io::PictureFormat& format);

/// All that a request asks for.
class Pictures {
public:
    /// Draws, and shows nothing yet. Errors: kind usage and unsupported, for what cannot be drawn;
    /// kind io.
    Pictures(const Request& request, const io::Report& report, const io::IsBlocked& is_blocked);

    /// The file. Errors: kind io.
    void commit();

    /// What the terminal shows. Errors: kind io.
    void show() const;

private:
    std::optional<io::OutputFile> file_;
    std::string text_;  // for the terminal
    int descriptor_;    // that it goes to
};

}  // namespace attn::cli
