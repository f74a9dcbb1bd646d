import { DeedDialog } from './actions'
import { Frame } from './frame'

// The dialog of a deed for a page that stands outside the frame of antd.
export default function FramedDeed(props: Parameters<typeof DeedDialog>[0]) {
  return <Frame><DeedDialog {...props} /></Frame>
}
