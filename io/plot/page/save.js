
// ---- The picture as a file: what is shown, on white, as SVG or PNG

const paper = {ink: '#1c2024', muted: '#5f6871', masked: '#f0f0f0', ground: '#ffffff'};
const savedFont = (size, isBold) => `${isBold ? '600 ' : ''}${size}px system-ui, "DejaVu Sans", sans-serif`;
const barLength = 304;   // of the legend
const mostRects = 4096;  // cells; more are an image in the SVG

/// Two pens with the same strokes: one writes SVG, one paints a canvas.
class SvgPen {
    constructor(width, height) {
        // The parser sets the namespace of SVG.
        this.root = new DOMParser().parseFromString('<svg></svg>', 'text/html').querySelector('svg');
        this.add('', {viewBox: `0 0 ${width} ${height}`, width, height,
                      'font-family': "system-ui, 'DejaVu Sans', sans-serif"}, this.root);
        this.rect(0, 0, width, height, paper.ground);
    }
    add(name, attributes, node = document.createElementNS(this.root.namespaceURI, name)) {
        for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
        if (node !== this.root) this.root.append(node);
        return node;
    }
    rect(x, y, width, height, fill) { this.add('rect', {x, y, width, height, fill}); }
    text(x, y, text, {size = 12, anchor = 'start', turn = 0, color = paper.ink, isBold = false} = {}) {
        this.add('text', {x, y, fill: color, 'font-size': size, 'text-anchor': anchor,
                          ...(isBold && {'font-weight': 600}),
                          ...(turn && {transform: `rotate(${turn} ${x} ${y})`})}).textContent = text;
    }
    image(source, x, y, width, height) {
        this.add('image', {x, y, width, height, preserveAspectRatio: 'none', href: source.toDataURL(),
                           'image-rendering': 'pixelated'});
    }
    file() { return new Blob([new XMLSerializer().serializeToString(this.root)], {type: 'image/svg+xml'}); }
}

class CanvasPen {
    constructor(width, height) {
        this.canvas = document.createElement('canvas');
        const scale = Math.min(2, 8000 / Math.max(width, height));
        this.canvas.width = Math.round(width * scale);
        this.canvas.height = Math.round(height * scale);
        this.context = this.canvas.getContext('2d');
        this.context.scale(scale, scale);
        this.context.imageSmoothingEnabled = false;
        this.rect(0, 0, width, height, paper.ground);
    }
    rect(x, y, width, height, color) {
        this.context.fillStyle = color;
        this.context.fillRect(x, y, width, height);
    }
    text(x, y, text, {size = 12, anchor = 'start', turn = 0, color = paper.ink, isBold = false} = {}) {
        const {context} = this;
        context.save();
        context.translate(x, y);
        context.rotate(turn * Math.PI / 180);
        context.font = savedFont(size, isBold);
        context.textAlign = {start: 'left', middle: 'center', end: 'right'}[anchor];
        context.fillStyle = color;
        context.fillText(text, 0, 0);
        context.restore();
    }
    image(source, x, y, width, height) { this.context.drawImage(source, x, y, width, height); }
    file() { return new Promise((done) => this.canvas.toBlob(done, 'image/png')); }
}

/// The layout, in pixels.
function planPicture() {
    const rows = map.rows.size, columns = map.columns.size;
    const cell = Math.min(64, Math.max(1, Math.floor(900 / Math.max(rows, columns))));
    const left = 24 + Math.ceil(Math.min(Math.max(map.widestRow, 64), 160)) + 6;
    const isFlat = map.widestColumn + 8 <= cell;
    const above = 64, top = above + (isFlat ? 32 : Math.max(32, Math.ceil(Math.min(map.widestColumn, 160)) + 8));
    const heading = headingOfShown(), below = [nameOfShown(), map.title].filter(Boolean).join(' · ');
    pen.font = savedFont(16, true);
    const wide = Math.max(24 + pen.measureText(heading).width, left + barLength + 130, left + columns * cell);
    const bottom = top + rows * cell;
    return {cell, left, isFlat, top, bottom, heading, below,
            width: Math.ceil(wide + 24), height: bottom + 76};
}

function paintCells(to, {cell, left, top}) {
    const rows = map.rows.size, columns = map.columns.size;
    if (shown.hasMasked) to.rect(left, top, columns * cell, rows * cell, paper.masked);
    if (rows * columns > mostRects) {
        const image = document.createElement('canvas');
        drawRaster(image, map, shown, columns, rows);
        return to.image(image, left, top, columns * cell, rows * cell);
    }
    const positions = positionsOf(map, shown), gap = cell >= 12 ? 1 : 0;
    for (let i = 0; i < positions.length; ++i) {
        if (Number.isNaN(positions[i])) continue;
        const color = positions[i] === Infinity ? noNumber : colorAt(map, positions[i]);
        const x = left + i % columns * cell, y = top + Math.floor(i / columns) * cell;
        to.rect(x, y, cell - gap, cell - gap, `rgb(${color})`);
        if (cell >= 36 && positions[i] !== Infinity)
            to.text(x + cell / 2, y + cell / 2 + 4, shortText(shown.numbers[i]),
                    {anchor: 'middle', color: inkOn(color)});
    }
}

function paintLabels(to, {cell, left, top, isFlat}) {
    const apart = isFlat ? 1 : Math.ceil(labelRoom / cell), apartDown = Math.ceil(labelRoom / cell);
    const corner = {size: 11, anchor: 'end', color: paper.muted};
    to.text(left - 6, top - 22, `${map.columns.axis} →`, corner);
    to.text(left - 6, top - 7, `${map.rows.axis} ↓`, corner);
    pen.font = savedFont(12);
    for (let column = 0; column < map.columns.size; column += apart) {
        const x = left + (column + 0.5) * cell, text = fitted(map.columns.labels[column], 160);
        if (isFlat) to.text(x, top - 7, text, {anchor: 'middle'});
        else to.text(x + 4, top - 5, text, {turn: -90});
    }
    for (let row = 0; row < map.rows.size; row += apartDown)
        to.text(left - 6, top + (row + 0.5) * cell + 4, fitted(map.rows.labels[row], 160), {anchor: 'end'});
}

function paintLegend(to, {left, bottom}) {
    const y = bottom + 16, steps = 120, length = barLength, small = {size: 11, color: paper.muted};
    for (let i = 0; i < steps; ++i) {
        const position = (i || 0.1) / (steps - 1);
        to.rect(left + i * length / steps, y, length / steps + (i < steps - 1 ? 0.5 : 0), 12,
                `rgb(${colorAt(map, map.diverging ? 2 * position - 1 : position)})`);
    }
    for (const {share, text} of ticksOf())
        to.text(left + share * length, y + 26, text, {...small, anchor: share === 0 ? 'start' : share === 1 ? 'end' : 'middle'});
    to.text(left, y + 44, element('scale-words').textContent, small);
    const keys = [[shown.hasMasked, paper.masked, 'masked'],
                  [map.dropped, `rgb(${droppedColor})`, contents.dropped_words], [shown.lacksNumber, `rgb(${noNumber})`, 'no number']];
    for (const [i, [, color, text]] of keys.filter(([isThere]) => isThere).entries()) {
        to.rect(left + length + 24, y + 20 * i, 18, 12, color);
        to.text(left + length + 48, y + 20 * i + 10, text, small);
    }
}

async function savePicture(kind) {
    if (!shown) return;
    const plan = planPicture();
    const to = new (kind === 'svg' ? SvgPen : CanvasPen)(plan.width, plan.height);
    pen.font = savedFont(12);
    to.text(24, 32, plan.heading, {size: 16, isBold: true});
    to.text(24, 50, fitted(plan.below, plan.width - 48), {size: 11, color: paper.muted});
    paintCells(to, plan);
    paintLabels(to, plan);
    paintLegend(to, plan);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await to.file());
    link.download = `${[map.array, nameOfShown()].join(' ').trim().replace(/[^\w-]+/g, '-')}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

for (const kind of ['svg', 'png'])
    element(`save-${kind}`).addEventListener('click', () => savePicture(kind));
