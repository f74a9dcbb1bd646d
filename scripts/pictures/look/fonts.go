package look

import (
	"fmt"
	"os"
	"path/filepath"
)

// Fonts writes a configuration of fontconfig into folder, and returns its path: letters
// are DejaVu's, which every Debian with fontconfig has, Chinese ones Noto's, and none
// has smooth edges. So pictures of letters are few bytes, and the same on every machine.
func Fonts(folder string) (string, error) {
	const text = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts/truetype/dejavu</dir>
  <dir>/usr/share/fonts/opentype/noto</dir>
  <cachedir>%s</cachedir>
  <selectfont><rejectfont><glob>*Serif*</glob></rejectfont><rejectfont><glob>*Condensed*</glob></rejectfont><rejectfont><glob>*ExtraLight*</glob></rejectfont></selectfont>
  <match target="pattern">
    <test qual="all" name="family" compare="not_eq"><string>sans-serif</string></test>
    <test qual="all" name="family" compare="not_eq"><string>monospace</string></test>
    <edit name="family" mode="append_last"><string>sans-serif</string></edit>
  </match>
  <match target="pattern">
    <edit name="antialias" mode="assign"><bool>false</bool></edit>
    <edit name="hinting" mode="assign"><bool>true</bool></edit>
    <edit name="hintstyle" mode="assign"><const>hintfull</const></edit>
  </match>
  <match target="font">
    <edit name="antialias" mode="assign"><bool>false</bool></edit>
  </match>
  <alias binding="same"><family>system-ui</family><prefer><family>DejaVu Sans</family><family>Noto Sans CJK SC</family></prefer></alias>
  <alias binding="same"><family>sans-serif</family><prefer><family>DejaVu Sans</family><family>Noto Sans CJK SC</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family><family>Noto Sans Mono CJK SC</family></prefer></alias>
</fontconfig>
`
	path := filepath.Join(folder, "fonts.conf")
	return path, os.WriteFile(path, fmt.Appendf(nil, text, filepath.Join(folder, "fonts")), 0o600)
}
