// What servers say by id beside that: events and refusals.
const areas = import.meta.glob('../../internal/messages/zh/{state,server,rpc,auth,maintenance,consent,name}.json', { eager: true, import: 'default' })

export default Object.assign({}, ...Object.values(areas)) as Record<string, string>
