// Sha256 is SHA-256 of what comes in pieces, as FIPS 180-4 has it.
const constants = (() => {
  const primes: number[] = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n)
  const fraction = (x: number) => ((x - Math.floor(x)) * 2 ** 32) | 0
  return { rounds: Int32Array.from(primes, (p) => fraction(Math.cbrt(p))), first: Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))) }
})()

export class Sha256 {
  private readonly state = constants.first.slice()
  private readonly words = new Int32Array(64)
  private readonly rest = new Uint8Array(64)
  private kept = 0
  private bytes = 0

  add(data: Uint8Array): this {
    this.bytes += data.length
    let at = 0
    if (this.kept) {
      at = Math.min(64 - this.kept, data.length)
      this.rest.set(data.subarray(0, at), this.kept)
      this.kept += at
      if (this.kept < 64) return this
      this.blocks(this.rest, 0, 64)
      this.kept = 0
    }
    const whole = at + ((data.length - at) & ~63)
    this.blocks(data, at, whole)
    this.rest.set(data.subarray(whole))
    this.kept = data.length - whole
    return this
  }

  // hex ends it.
  hex(): string {
    const bits = this.bytes * 8
    const tail = new Uint8Array(((this.kept + 8) & 64) + 64 - this.kept)
    tail[0] = 0x80
    const view = new DataView(tail.buffer)
    view.setUint32(tail.length - 8, Math.floor(bits / 2 ** 32))
    view.setUint32(tail.length - 4, bits >>> 0)
    this.add(tail)
    return Array.from(this.state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }

  private blocks(data: Uint8Array, from: number, to: number) {
    const { words: w, state } = this
    const k = constants.rounds
    let [h0, h1, h2, h3, h4, h5, h6, h7] = state as unknown as [number, number, number, number, number, number, number, number]
    for (let at = from; at < to; at += 64) {
      for (let i = 0, j = at; i < 16; i++, j += 4) w[i] = (data[j]! << 24) | (data[j + 1]! << 16) | (data[j + 2]! << 8) | data[j + 3]!
      for (let i = 16; i < 64; i++) {
        const x = w[i - 15]!
        const y = w[i - 2]!
        w[i] = (w[i - 16]! + w[i - 7]! + (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) + (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) | 0
      }
      let a = h0, b = h1, c = h2, d = h3, e = h4, f = h5, g = h6, h = h7
      for (let i = 0; i < 64; i++) {
        const t1 = (h + (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) + ((e & f) ^ (~e & g)) + k[i]! + w[i]!) | 0
        const t2 = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c))) | 0
        h = g
        g = f
        f = e
        e = (d + t1) | 0
        d = c
        c = b
        b = a
        a = (t1 + t2) | 0
      }
      h0 = (h0 + a) | 0
      h1 = (h1 + b) | 0
      h2 = (h2 + c) | 0
      h3 = (h3 + d) | 0
      h4 = (h4 + e) | 0
      h5 = (h5 + f) | 0
      h6 = (h6 + g) | 0
      h7 = (h7 + h) | 0
    }
    state.set([h0, h1, h2, h3, h4, h5, h6, h7])
  }
}
