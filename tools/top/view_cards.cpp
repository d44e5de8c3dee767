// The bars of the cards: see view_parts.h.
#include <algorithm>
#include <array>

#include "tools/common/format.h"
#include "tools/common/text_width.h"
#include "tools/top/view_parts.h"

namespace gpucap::tools {
namespace {

constexpr size_t kNarrowestCell = 26;  // of a card that shares its line
constexpr size_t kWidestName = 24;

struct Shares {
  uint64_t data_bytes, driver_bytes, others_bytes;
};

Shares shares_of(const CardView& card) {
  Shares shares{card.data_bytes, card.driver_bytes + card.reserved_bytes, 0};
  if (!card.used_bytes) return shares;
  // Managed memory may lie on the host: it is the card's only as far as the card is that full.
  const uint64_t ours = card.data_bytes + card.driver_bytes;
  if (ours > *card.used_bytes) {
    shares.data_bytes -= std::min({ours - *card.used_bytes, card.managed_bytes, card.data_bytes});
  } else {
    shares.others_bytes = *card.used_bytes - ours;
  }
  return shares;
}

void add_bar(StyledLine* line, const CardView& card, size_t cells, bool ascii) {
  const Glyphs& glyph = glyphs(ascii);
  const Shares shares = shares_of(card);
  const double total = static_cast<double>(std::max<uint64_t>(card.total_bytes.value_or(0), 1));
  size_t filled = 0;
  double sum = 0;
  const auto part = [&](uint64_t bytes, const char* text, Style style) {
    sum += static_cast<double>(bytes);
    size_t end = std::min(cells, static_cast<size_t>(sum / total * static_cast<double>(cells) + 0.5));
    // Something is never nothing.
    if (bytes != 0 && end <= filled) end = std::min(cells, filled + 1);
    if (end > filled) add(line, repeated(text, end - filled), style);
    filled = std::max(filled, end);
  };
  add(line, "[");
  if (card.total_bytes) {
    part(shares.data_bytes, glyph.data, Style::kData);
    part(shares.driver_bytes, glyph.driver, Style::kDriver);
    part(shares.others_bytes, glyph.others, Style::kOthers);
    add(line, std::string(cells - filled, ' '));
  } else {
    add(line, padded_right(fit("size unknown", cells), cells), Style::kDim);
  }
  add(line, "]");
}

std::string use_text(const CardView& card) {
  const uint64_t used = card.used_bytes.value_or(card.data_bytes + card.driver_bytes);
  return human_bytes(used) + (card.total_bytes ? " / " + human_bytes(*card.total_bytes) : "");
}

bool over_committed(const CardView& card) { return card.total_bytes && card.caps_bytes > *card.total_bytes; }

std::string caps_text(const CardView& card) {
  if (card.capped_processes == 0) return "";
  std::string text = "caps " + human_bytes(card.caps_bytes);
  if (over_committed(card)) text += " = " + percent_of(card.caps_bytes, *card.total_bytes) + "%";
  return text;
}

size_t widest(const std::vector<CardView>& cards, std::string (*text)(const CardView&)) {
  size_t width = 0;
  for (const CardView& card : cards) width = std::max(width, display_width(text(card)));
  return width;
}

StyledLine wide_line(const std::vector<CardView>& cards, const CardView& card, size_t columns, bool ascii) {
  const size_t use_width = widest(cards, use_text);
  size_t caps_width = widest(cards, caps_text);
  size_t name_width = 0;
  for (const CardView& each : cards) name_width = std::max(name_width, display_width(each.name));
  name_width = std::min(name_width, kWidestName);
  StyledLine line;
  add(&line, "GPU " + padded_left(std::to_string(card.number), cards.size() > 10 ? 2 : 1) + " ", Style::kStrong);
  // What gives way on a narrow line: the name first, then the caps.
  const size_t number_width = line_width(line);
  const auto bar_cells = [&] {
    const size_t others =
        number_width + 3 + use_width + (name_width != 0 ? name_width + 1 : 0) + (caps_width != 0 ? caps_width + 2 : 0);
    return columns > others ? columns - others : 0;
  };
  if (bar_cells() < 20) name_width = 0;
  if (bar_cells() < 10) caps_width = 0;
  if (name_width != 0) add(&line, padded_right(fit(card.name, name_width), name_width) + " ");
  add_bar(&line, card, bar_cells(), ascii);
  add(&line, " " + padded_left(use_text(card), use_width));
  if (caps_width != 0) {
    add(&line, "  " + padded_right(caps_text(card), caps_width), over_committed(card) ? Style::kWarning : Style::kDim);
  }
  return cut(line, columns);
}

StyledLine narrow_cell(const CardView& card, size_t number_width, size_t columns, bool ascii) {
  const uint64_t used = card.used_bytes.value_or(card.data_bytes + card.driver_bytes);
  std::string text = " " + padded_left(human_bytes(used), 8);
  if (columns >= 40 && card.total_bytes) text += " / " + padded_left(human_bytes(*card.total_bytes), 8);
  StyledLine line;
  add(&line, padded_left(std::to_string(card.number), number_width), Style::kStrong);
  const size_t taken = line_width(line) + 3 + display_width(text);
  add_bar(&line, card, columns > taken ? columns - taken : 0, ascii);
  add(&line, text);
  add(&line, over_committed(card) ? "!" : " ", Style::kWarning);
  return cut(line, columns);
}

}  // namespace

std::vector<StyledLine> card_lines(const std::vector<CardView>& cards, size_t columns, size_t most_lines, bool ascii) {
  std::vector<StyledLine> lines;
  if (cards.empty() || most_lines == 0) return lines;
  if (cards.size() <= most_lines) {
    for (const CardView& card : cards) lines.push_back(wide_line(cards, card, columns, ascii));
  } else {
    const size_t most_beside = std::max<size_t>(1, (columns + 1) / (kNarrowestCell + 1));
    const size_t beside = std::min(most_beside, (cards.size() + most_lines - 1) / most_lines);
    const size_t cell = (columns + 1) / beside - 1;
    const size_t shown = std::min(cards.size(), beside * most_lines);
    for (size_t i = 0; i < shown; ++i) {
      if (i % beside == 0) lines.emplace_back();
      for (const Span& span : narrow_cell(cards[i], cards.size() > 10 ? 2 : 1, cell, ascii)) {
        add(&lines.back(), span.text, span.style);
      }
      if (i % beside + 1 < beside) add(&lines.back(), " ");
    }
    if (shown < cards.size()) {
      const std::string more = " +" + std::to_string(cards.size() - shown) + " GPUs";
      StyledLine last = cut(lines.back(), columns > more.size() ? columns - more.size() : 0);
      add(&last, more, Style::kWarning);
      lines.back() = cut(last, columns);
    }
  }

  return lines;
}

StyledLine legend(bool ascii) {
  const Glyphs& glyph = glyphs(ascii);
  StyledLine line;
  add(&line, glyph.data, Style::kData);
  add(&line, " data ");
  add(&line, glyph.driver, Style::kDriver);
  add(&line, " driver ");
  add(&line, glyph.others, Style::kOthers);
  add(&line, " others");
  return line;
}

}  // namespace gpucap::tools
