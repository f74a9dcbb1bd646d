// The nonce of this page lets the style sheets that scripts of ours make
// through the policy of the page; what is written as markup stays out. Those
// of xterm know of none, so every new style element gets it.
export const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content ?? ''

const create = document.createElement
document.createElement = function (this: Document, ...args: Parameters<typeof create>) {
  const made = create.apply(this, args)
  if (made instanceof HTMLStyleElement) made.nonce = nonce
  return made
} as typeof create
