// Titles of memories in a picture: each has a place where it covers no memory, no other title and no button, or is left
// out. The picture itself is in pictures.js.

const most = 38 // characters of a title
const gap = 3 // pixels

export const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1).trimEnd() + '…' : text)

// titling draws titles, frame by frame. places returns the places and sizes of the memories in the stage; buttons the
// boxes of the buttons over the stage; colours the colours of the page; titleOf the title of a memory by its number, or
// an empty one if it is not known yet.
export function titling(places, buttons, colours, titleOf) {
  let points = null // of this frame
  let boxes = [] // of the titles in it
  let over = [] // boxes of the buttons
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  const isFree = (box, stage) => box.left >= 0 && box.top >= 0 && box.right <= stage.clientWidth
    && box.bottom <= stage.clientHeight &&
    !boxes.some((other) => meets(box, other)) && !over.some((other) => meets(box, other)) &&
    !points.some(({ x, y, radius }) =>
      meets(box, { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius }))
  return {
    // clear begins a frame.
    clear() {
      points = null
      boxes = []
    },
    boxes: () => boxes,
    draw(context, data, settings) {
      if (!data.label) return
      if (!points) [points, over] = [places(), buttons()]
      context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`
      const text = shortened(titleOf(Number(data.key)), most)
      if (!text) return
      const [width, half, away] = [context.measureText(text).width, settings.labelSize * 0.65, data.size + gap]
      const { x, y } = data
      const box = [[x + away, y], [x - away - width, y], [x - width / 2, y - away - half],
        [x - width / 2, y + away + half]]
        .map(([left, middle]) => ({ left, right: left + width, top: middle - half, bottom: middle + half }))
        .find((one) => isFree(one, context.canvas))
      if (!box) return
      boxes.push(box)
      context.lineWidth = 3
      context.lineJoin = 'round'
      context.strokeStyle = colours().card
      context.fillStyle = colours().text
      context.strokeText(text, box.left, (box.top + box.bottom) / 2 + settings.labelSize / 3)
      context.fillText(text, box.left, (box.top + box.bottom) / 2 + settings.labelSize / 3)
    },
  }
}
