# A second step: it waits in the queue until the job hello, submitted before it in the
# same project, has succeeded, and not before ten at night in the zone of whoever submits
# it. When hello ends otherwise this job leaves the queue and says why; when it has not
# found room within twelve hours, too.
job "evaluate" {
  begin          = "22:00"
  max_queue_time = "12h"

  after "hello" {
    when = "succeeded" # or ended, failed, started
  }

  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = "echo evaluating"
  }
}
