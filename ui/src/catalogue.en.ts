// What servers say by id, in one file: state, scheduler and their neighbours.
const areas = import.meta.glob('../../internal/messages/en/{state,scheduler,forecast,client,device,docker,driver,server,launch,rpc,auth,jobspec,maintenance,consent,name,word}.json', { eager: true, import: 'default' })

export default Object.assign({}, ...Object.values(areas)) as Record<string, string>
