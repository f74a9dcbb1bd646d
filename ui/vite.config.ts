/// <reference types="vitest/config" />
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// The binary carries assets packed: it serves them as they are to browsers,
// which all understand gzip.
function pack(): Plugin {
  return {
    name: 'pack-assets',
    apply: 'build',
    closeBundle() {
      const folder = 'dist/app/assets'
      for (const name of readdirSync(folder)) {
        const path = join(folder, name)
        writeFileSync(path + '.gz', gzipSync(readFileSync(path), { level: 9 }))
        rmSync(path)
      }
    },
  }
}

export default defineConfig({
  plugins: [react(), pack()],
  build: {
    outDir: 'dist/app',
    emptyOutDir: true,
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1600,
    reportCompressedSize: false,
  },
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.{ts,tsx}'],
    testTimeout: 60_000,
  },
})
