// What is wrong with a job file: read where one is written.
import texts from '../../internal/messages/zh/jobspec.json'

export default texts as Record<string, string>
