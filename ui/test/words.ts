import compareEN from '../src/locales/compare/en.json'
import compareZH from '../src/locales/compare/zh.json'
import firstEN from '../src/locales/en.json'
import jobEN from '../src/locales/job/en.json'
import jobZH from '../src/locales/job/zh.json'
import peopleEN from '../src/locales/people/en.json'
import peopleZH from '../src/locales/people/zh.json'
import serversEN from '../src/locales/servers/en.json'
import serversZH from '../src/locales/servers/zh.json'
import vipEN from '../src/locales/vip/en.json'
import vipZH from '../src/locales/vip/zh.json'
import firstZH from '../src/locales/zh.json'

// The words of all pages, those that come with a page included.
export const en = { ...firstEN, ...compareEN, ...jobEN, ...peopleEN, ...serversEN, vip: { ...firstEN.vip, ...vipEN.vip } }
export const zh = { ...firstZH, ...compareZH, ...jobZH, ...peopleZH, ...serversZH, vip: { ...firstZH.vip, ...vipZH.vip } }
