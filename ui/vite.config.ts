/// <reference types="vitest/config" />
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, minifySync, type Plugin } from 'vite'

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

// What to do about a refusal comes with the refusal: pages look no hints up in the
// servers' catalogue, and leave them out.
function unhinted(): Plugin {
  return {
    name: 'unhinted',
    enforce: 'pre',
    transform: (code, id) => (/internal\/messages\/(en|zh)\/[a-z]+\.json$/.test(id) ? JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(code) as Record<string, string>).filter(([key]) => !key.endsWith('.hint')))) : undefined),
  }
}

// What is seen first: the frame of the site, home and the list of jobs.
const first = /rolldown\/runtime|\/node_modules\/(react|react-dom|scheduler|react-router|cookie|set-cookie-parser|@tanstack\/[a-z-]+|i18next|react-i18next|html-parse-stringify|void-elements|use-sync-external-store)\/|\/ui\/src\/(acting|again|address|api|app|events|format|i18n|look|nonce|main|rights|shell|signin|types)\.tsx?$|\/ui\/src\/pages\/(home|jobs)\.tsx$|\/ui\/src\/parts\/(acting|away|controls|controls\/messages|deeds|draft|filters|grid|jobrow|keys|lists|load|mine|palette|rail|starts|states|wall)\.tsx?$/

// What a first view needs beyond the program itself: the code of its page and
// the texts of its language. Imports would ask for them one after the other;
// boot.js asks for all of them, and for the first data, at once.
function boot(): Plugin {
  return {
    name: 'boot',
    apply: 'build',
    generateBundle(_, bundle) {
      const files = new Map<string, string[]>()
      const all = (file: string, seen = new Set<string>()): string[] => {
        const chunk = bundle[file]
        if (seen.has(file) || chunk?.type !== 'chunk') return []
        seen.add(file)
        return [file, ...chunk.imports.flatMap((one) => all(one, seen))]
      }
      const entry = Object.values(bundle).find((chunk) => chunk.type === 'chunk' && chunk.isEntry)
      const have = new Set(entry ? all(entry.fileName) : [])
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk' || !chunk.facadeModuleId) continue
        const name = /src\/(?:pages|locales|parts)\/([a-z]+)\.(?:tsx|json)$/.exec(chunk.facadeModuleId)?.[1] ?? /src\/(catalogue\.[a-z]+)\.ts$/.exec(chunk.facadeModuleId)?.[1]
        if (name) files.set(name, all(chunk.fileName).filter((file) => !have.has(file)))
      }
      if (files.size < 10) this.error('boot: pages and texts are not where they were')
      const source = minifySync('boot.js', readFileSync('src/boot.js', 'utf8').replace('{} /* files */', JSON.stringify(Object.fromEntries(files)))).code
      this.emitFile({ type: 'asset', fileName: 'boot.js', source })
    },
    transformIndexHtml: { order: 'post', handler: (html) => html.replace('<link rel="icon"', '<script src="/boot.js"></script>\n    <link rel="icon"') },
  }
}

export default defineConfig({
  plugins: [react(), unhinted(), boot(), pack()],
  // The router's package names only its build with warnings for who develops with it.
  resolve: { alias: process.env.VITEST ? [] : [{ find: /^react-router$/, replacement: join(import.meta.dirname, 'node_modules/react-router/dist/production/index.mjs') }] },
  build: {
    outDir: 'dist/app',
    emptyOutDir: true,
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1600,
    reportCompressedSize: false,
    // What is seen first comes in one file; a browser asks for many files in turn.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'first', test: first, priority: 1 }] } } },
  },
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.{ts,tsx}'],
    setupFiles: ['test/dialogs.ts'],
    testTimeout: 60_000,
  },
})
