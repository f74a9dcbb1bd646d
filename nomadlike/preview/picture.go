package preview

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // measured by image.DecodeConfig
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"unicode/utf16"
)

// picture tells a picture by its first bytes, and measures it: a small file may say
// that it is larger than a browser can bear.
func picture(head []byte, size int64) (Shown, bool) {
	media, width, height, ok := "", 0, 0, false
	if width, height, ok = webp(head); ok {
		media = "image/webp"
	} else if config, format, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
		media, width, height = "image/"+format, config.Width, config.Height
	} else {
		return Shown{}, false
	}
	shown := Shown{Kind: KindImage, Media: media, Width: width, Height: height}
	switch {
	case width <= 0 || height <= 0:
		shown.Kind, shown.Why = KindNone, "broken"
	case size > ImageMax, int64(width)*int64(height) > PixelsMax:
		shown.Kind, shown.Why = KindNone, "too_large"
	}
	return shown, true
}

// webp measures a WebP picture by the three heads that one may have.
func webp(head []byte) (width, height int, is bool) {
	const least = 30
	if len(head) < least || string(head[:4]) != "RIFF" || string(head[8:12]) != "WEBP" {
		return 0, 0, false
	}
	switch string(head[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(head[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(head[28:]) & 0x3fff), true
	case "VP8L":
		bits := binary.LittleEndian.Uint32(head[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X":
		three := func(at int) int { return int(head[at]) | int(head[at+1])<<8 | int(head[at+2])<<16 }
		return three(24) + 1, three(27) + 1, true
	}
	return 0, 0, true
}

// wide reads text in two bytes a character, which begins with its order.
func wide(data []byte) (string, bool) {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return "", false
	}
	data = data[2:]
	words := make([]uint16, len(data)/2)
	for i := range words {
		if words[i] = order.Uint16(data[2*i:]); words[i] == 0 {
			return "", false
		}
	}
	return string(utf16.Decode(words)), true
}
