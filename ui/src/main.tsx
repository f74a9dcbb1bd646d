import './nonce'
import { createRoot } from 'react-dom/client'
import { App, takeFirst } from './app'
import { startLanguage } from './i18n'
import './main.css'
import './controls.css'

void takeFirst()
await startLanguage()
sessionStorage.removeItem('nomadlike.loads') // boot.js counts in it
createRoot(document.getElementById('root')!).render(<App />)
