// What servers say by id of jobs, nodes and cards, which lists of them show: all that a
// first view has to say. The rest is in the other file.
const areas = import.meta.glob('../../internal/messages/zh/{reason,scheduler,forecast,client,device,docker,driver,launch,word}.json', { eager: true, import: 'default' })

export default Object.assign({}, ...Object.values(areas)) as Record<string, string>
