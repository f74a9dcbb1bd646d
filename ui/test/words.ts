import compareEN from '../src/locales/compare/en.json'
import compareZH from '../src/locales/compare/zh.json'
import createEN from '../src/locales/create/en.json'
import createZH from '../src/locales/create/zh.json'
import dataEN from '../src/locales/data/en.json'
import dataZH from '../src/locales/data/zh.json'
import firstEN from '../src/locales/en.json'
import jobEN from '../src/locales/job/en.json'
import jobZH from '../src/locales/job/zh.json'
import limitsEN from '../src/locales/limits/en.json'
import limitsZH from '../src/locales/limits/zh.json'
import moreEN from '../src/locales/more/en.json'
import moreZH from '../src/locales/more/zh.json'
import peopleEN from '../src/locales/people/en.json'
import peopleZH from '../src/locales/people/zh.json'
import serversEN from '../src/locales/servers/en.json'
import serversZH from '../src/locales/servers/zh.json'
import signinEN from '../src/locales/signin/en.json'
import signinZH from '../src/locales/signin/zh.json'
import toldEN from '../src/locales/told/en.json'
import toldZH from '../src/locales/told/zh.json'
import uploadEN from '../src/locales/upload/en.json'
import uploadZH from '../src/locales/upload/zh.json'
import vipEN from '../src/locales/vip/en.json'
import vipZH from '../src/locales/vip/zh.json'
import firstZH from '../src/locales/zh.json'

type Tree = { [key: string]: string | Tree }

// merged puts trees of words together, as the page does with what comes later.
const merged = (...trees: Tree[]): Tree => trees.reduce((all, tree) => {
  const out = { ...all }
  for (const [key, value] of Object.entries(tree)) out[key] = typeof value === 'object' && typeof out[key] === 'object' ? merged(out[key], value) : value
  return out
}, {})

// The words that home and the list of jobs have.
export const first = firstEN as Tree

// The words of all pages, those that come with a page included.
export const en = merged(firstEN, moreEN, compareEN, createEN, dataEN, jobEN, limitsEN, peopleEN, serversEN, signinEN, toldEN, uploadEN, vipEN) as typeof firstEN & typeof moreEN & typeof compareEN & typeof createEN & typeof dataEN & typeof jobEN & typeof limitsEN & typeof peopleEN & typeof serversEN & typeof signinEN & typeof toldEN & typeof uploadEN & typeof vipEN
export const zh = merged(firstZH, moreZH, compareZH, createZH, dataZH, jobZH, limitsZH, peopleZH, serversZH, signinZH, toldZH, uploadZH, vipZH) as typeof firstZH & typeof moreZH & typeof compareZH & typeof createZH & typeof dataZH & typeof jobZH & typeof limitsZH & typeof peopleZH & typeof serversZH & typeof signinZH & typeof toldZH & typeof uploadZH & typeof vipZH
