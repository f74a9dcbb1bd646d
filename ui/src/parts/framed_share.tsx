import { Frame } from './frame'
import { ShareDialog } from './share'

// The dialog that shares the wall, for a page that stands outside the frame of
// antd.
export default function FramedShare({ close }: { close: () => void }) {
  return <Frame><ShareDialog path="/v1/wall/shares" close={close} /></Frame>
}
